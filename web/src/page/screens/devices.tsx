// Who is paired, since when, with which keys; and how trust is taken away.

import { useEffect, useState } from "preact/hooks";

import { createLock, hasLock } from "../../keys/lock.ts";
import {
  fingerprintDigits,
  isFingerprint,
  type Pin,
  revoke,
  shortFingerprint,
  visible,
  visibleCode,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { screenChanged } from "../guard.ts";
import { Icon } from "../icons.tsx";
import { messageOf } from "../messages.ts";
import { machines, machinesWithLock, makeRecoveryCode, removePairs, state } from "../pairing.ts";
import { Act, clock, Digits, Fold, Lock, Marked, Problem, Screen, useApp, usePage } from "../parts.tsx";
import { writeRoute } from "../route.ts";
import { changePins } from "../trust.ts";
import { NoticesSection } from "./notices.tsx";

export function DevicesScreen() {
  const { pins, profile } = usePage();
  return (
    <Screen title={texts.devices}>
      <h2 class="heading">{texts.machines}</h2>
      <section class="card rows">
        {pins.all.length === 0 ? <p class="empty">{texts.machinesEmpty}</p> : null}
        {pins.all.map((pin) => (
          <Machine key={pin.fingerprint} pin={pin} />
        ))}
        <a class="foot" href={writeRoute({ name: "pair" })}>
          <Icon name="scan" />
          {texts.pairTitle}
        </a>
      </section>
      <h2 class="heading">{texts.answerAs(visible(profile?.id ?? ""))}</h2>
      <section class="card rows">
        <ThisDevice />
        <Fold icon="devices" title={texts.revokeTitle} note={texts.vouchedCount(profile?.vouched?.length ?? 0)}>
          <RevokeDevice />
        </Fold>
        <a class="foot" href={writeRoute({ name: "vouch" })}>
          <Icon name="plus" />
          {texts.vouchTitle}
        </a>
      </section>
      <NoticesSection />
      <section class="card rows">
        <Relay />
        <Recovery />
        <Fold icon="trash" title={texts.forgetTitle} note={texts.forgetNote}>
          <Forget />
        </Fold>
      </section>
    </Screen>
  );
}

function Relay() {
  const { profile } = usePage();
  return (
    <Fold icon="globe" title={texts.relay} note={texts.relayNote}>
      <p class="code">{visibleCode(profile?.gateway ?? "")}</p>
    </Fold>
  );
}

function Recovery() {
  const app = useApp();
  const withLock = machinesWithLock(app).map(visible);
  return (
    <Fold icon="key" title={texts.recoveryCode} note={texts.recoveryNote}>
      {withLock.length === 0 ? null : <p class="note">{texts.lockVouches(withLock)}</p>}
      <Act label={texts.recoveryMake} busy={texts.recoveryMaking} kind="quiet" act={() => makeRecoveryCode(app)} />
      <a class="button quiet" href={writeRoute({ name: "recover" })}>
        {texts.recoverTitle}
      </a>
    </Fold>
  );
}

function Machine({ pin }: { pin: Pin }) {
  const app = useApp();
  const { profile } = usePage();
  const [isAsking, setAsking] = useState(false);
  const label = profile?.labels[pin.party.id] ?? "";
  const [problem, setProblem] = useState("");
  const untrust = async (): Promise<void> => {
    await changePins(app, (pins) => pins.revoke(pin.fingerprint, app.approver.http.clock.now()));
    // The button is gone by now, so its error is shown here.
    await removePairs(app, pin.party.id).catch((error: unknown) => setProblem(messageOf(error)));
  };
  const ask = (is: boolean): void => {
    screenChanged();
    setAsking(is);
  };
  const name = (
    <>
      <Marked text={visibleCode(pin.party.id)} /> {pin.revokedAt === undefined ? <Lock /> : null}
    </>
  );
  const said = label === "" || label === pin.party.id ? "" : `${visible(label)} · `;
  const note =
    pin.revokedAt === undefined
      ? `${said}${texts.pairedSince(clock(`${pin.since}`))}`
      : `${said}${texts.revokedSince} ${clock(`${pin.revokedAt}`)}`;
  return (
    <Fold icon="server" title={name} note={<Marked text={note} />}>
      <p class="note">{texts.compareDigits}</p>
      <Digits digits={fingerprintDigits(pin.bundle)} />
      <p class="note">
        {texts.key} {shortFingerprint(pin.bundle)}
      </p>
      {pin.revokedAt !== undefined ? (
        problem === "" ? null : (
          <>
            <Problem text={`${texts.pairLeft} ${problem}`} />
            <Act
              label={texts.removePair}
              kind="quiet"
              act={() => removePairs(app, pin.party.id).then(() => setProblem(""))}
            />
          </>
        )
      ) : isAsking ? (
        <>
          <p>{texts.untrustQuestion(visible(pin.party.id))}</p>
          <div class="pair even">
            <button type="button" class="button quiet" onClick={() => ask(false)}>
              {texts.cancel}
            </button>
            <Act label={texts.untrustGo} kind="danger" act={untrust} />
          </div>
        </>
      ) : (
        <button type="button" class="button danger" onClick={() => ask(true)}>
          {texts.untrust}
        </button>
      )}
    </Fold>
  );
}

function ThisDevice() {
  const app = useApp();
  const { profile } = usePage();
  const [hasOne, setHasOne] = useState<boolean>();
  const [isKept, setKept] = useState<boolean>();
  const [renewed, setRenewed] = useState<readonly string[]>();
  useEffect(() => {
    void hasLock().then(setHasOne);
    void navigator.storage?.persisted?.().then(setKept, () => setKept(false));
  }, []);
  const { bundle } = app.approver.identity.keys;
  const setUp = async (): Promise<void> => {
    const lock = await createLock(app.approver.identity.id);
    await app.change((before) => ({ ...before, lock }));
  };
  const setUpAgain = async (): Promise<void> => {
    const knowing = machinesWithLock(app);
    const lock = await createLock(app.approver.identity.id);
    // No machine knows the new one.
    await app.change((before) => ({ ...before, lock, lockToldTo: [] }));
    setRenewed(knowing);
  };
  const lock = profile?.lock !== undefined ? texts.lockSet : hasOne === true ? texts.lockUnset : texts.lockNone;
  const knowing = machinesWithLock(app).map(visible);
  const checked =
    profile?.lock === undefined ? "" : knowing.length === 0 ? texts.lockUntold : texts.lockToldTo(knowing);
  return (
    <Fold
      icon="phone"
      title={<Marked text={visible(profile?.id ?? "")} />}
      note={`${texts.thisDevice} · ${profile?.lock === undefined ? texts.noLock : texts.asksLock}`}
    >
      <dl class="facts">
        <div>
          <dt>{texts.lockTitle}</dt>
          <dd>
            {lock} {checked}
          </dd>
        </div>
        <div>
          <dt>{texts.storageTitle}</dt>
          <dd>{isKept === true ? texts.storageKept : texts.storageNotKept}</dd>
        </div>
        <div>
          <dt>{texts.key}</dt>
          <dd>{shortFingerprint(bundle)}</dd>
        </div>
        <div>
          <dt>{texts.fingerprint}</dt>
          <dd class="code">{app.approver.identity.keys.fingerprint}</dd>
        </div>
      </dl>
      <Digits digits={fingerprintDigits(bundle)} />
      {hasOne !== true ? null : profile?.lock === undefined ? (
        <Act label={texts.lockSetUp} kind="quiet" act={setUp} />
      ) : (
        <Act label={texts.lockSetUpAgain} kind="quiet" act={setUpAgain} />
      )}
      {renewed === undefined ? null : <p role="status">{texts.lockRenewed(renewed.map(visible))}</p>}
    </Fold>
  );
}

function RevokeDevice() {
  const app = useApp();
  const { profile } = usePage();
  const [print, setPrint] = useState("");
  const [sent, setSent] = useState<readonly string[]>([]);
  const send = async (fingerprint: string): Promise<void> => {
    for (const { party } of machines(app)) {
      await state(app, party.id, revoke(fingerprint));
      setSent((before) => [...before, texts.revokeSent(visible(party.id))]);
    }
    const revokedAt = new Date().toISOString();
    await app.change((before) => ({
      ...before,
      vouched: (before.vouched ?? []).map((device) =>
        device.fingerprint === fingerprint ? { ...device, revokedAt } : device,
      ),
    }));
  };
  return (
    <>
      <p class="note">{texts.revokeText}</p>
      {(profile?.vouched ?? []).map((device) => (
        <p key={device.fingerprint} class="vouched">
          <span>
            <Marked text={visible(device.label ?? device.approverId)} /> · {device.short} ·{" "}
            {device.revokedAt === undefined ? clock(device.until) : `${texts.revokedSince} ${clock(device.revokedAt)}`}
          </span>
          {device.revokedAt === undefined ? (
            <Act label={texts.revoke} kind="danger small" act={() => send(device.fingerprint)} />
          ) : null}
        </p>
      ))}
      <label>
        {texts.revokeFingerprint}
        <input
          class="code"
          type="text"
          autocomplete="off"
          spellcheck={false}
          value={print}
          onInput={(event) => setPrint(event.currentTarget.value)}
        />
      </label>
      <Act label={texts.revoke} kind="danger" act={() => send(print.trim())} disabled={!isFingerprint(print.trim())} />
      {sent.map((line) => (
        <p key={line} class="note" role="status">
          {line}
        </p>
      ))}
    </>
  );
}

function Forget() {
  const app = useApp();
  const [isAsking, setAsking] = useState(false);
  const ask = (is: boolean): void => {
    screenChanged();
    setAsking(is);
  };
  return (
    <>
      <p class="note">{texts.forgetText}</p>
      {isAsking ? (
        <div class="pair even">
          <button type="button" class="button quiet" onClick={() => ask(false)}>
            {texts.cancel}
          </button>
          <Act label={texts.forget} kind="danger" act={() => app.forget()} />
        </div>
      ) : (
        <button type="button" class="button quiet" onClick={() => ask(true)}>
          {texts.forgetTitle}…
        </button>
      )}
    </>
  );
}
