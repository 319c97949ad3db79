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
import { messageOf } from "../messages.ts";
import { machines, makeRecoveryCode, removePairs, state } from "../pairing.ts";
import { Act, clock, Digits, Marked, Problem, Screen, useApp, usePage } from "../parts.tsx";
import { writeRoute } from "../route.ts";
import { changePins } from "../trust.ts";

export function DevicesScreen() {
  const { pins } = usePage();
  return (
    <Screen title={texts.devices}>
      <section>
        <h2>{texts.machines}</h2>
        {pins.all.length === 0 ? <p class="empty">{texts.machinesEmpty}</p> : null}
        <ul class="cards">
          {pins.all.map((pin) => (
            <li key={pin.fingerprint}>
              <Machine pin={pin} />
            </li>
          ))}
        </ul>
        <a class="button primary" href={writeRoute({ name: "pair" })}>
          {texts.pairTitle}
        </a>
      </section>
      <ThisDevice />
      <section>
        <h2>{texts.vouchTitle}</h2>
        <a class="button quiet" href={writeRoute({ name: "vouch" })}>
          {texts.vouchTitle}
        </a>
        <a class="button quiet" href={writeRoute({ name: "recover" })}>
          {texts.recoverTitle}
        </a>
      </section>
      <RevokeDevice />
      <Forget />
    </Screen>
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
  return (
    <div class={`card${pin.revokedAt === undefined ? "" : " ended"}`}>
      <span class="effect">
        <Marked text={visibleCode(pin.party.id)} />
      </span>
      {label === "" || label === pin.party.id ? null : (
        <span class="who">
          <Marked text={visible(label)} />
        </span>
      )}
      <span class="about">
        <span class="who">
          {texts.key} {shortFingerprint(pin.bundle)} · {texts.since} {clock(`${pin.since}`)}
        </span>
      </span>
      <Digits digits={fingerprintDigits(pin.bundle)} />
      {pin.revokedAt !== undefined ? (
        <>
          <span class="reason">
            {texts.revokedSince} {clock(`${pin.revokedAt}`)}
          </span>
          {problem === "" ? null : (
            <>
              <Problem text={`${texts.pairLeft} ${problem}`} />
              <Act
                label={texts.removePair}
                kind="quiet small"
                act={() => removePairs(app, pin.party.id).then(() => setProblem(""))}
              />
            </>
          )}
        </>
      ) : isAsking ? (
        <>
          <p class="next">{texts.untrustQuestion(visible(pin.party.id))}</p>
          <div class="pair even">
            <button type="button" class="button quiet" onClick={() => ask(false)}>
              {texts.cancel}
            </button>
            <Act label={texts.untrustGo} kind="danger" act={untrust} />
          </div>
        </>
      ) : (
        <button type="button" class="button quiet small" onClick={() => ask(true)}>
          {texts.untrust}
        </button>
      )}
    </div>
  );
}

function ThisDevice() {
  const app = useApp();
  const { profile } = usePage();
  const [hasOne, setHasOne] = useState<boolean>();
  const [isKept, setKept] = useState<boolean>();
  useEffect(() => {
    void hasLock().then(setHasOne);
    void navigator.storage?.persisted?.().then(setKept, () => setKept(false));
  }, []);
  const { bundle } = app.approver.identity.keys;
  const setUp = async (): Promise<void> => {
    const lock = await createLock(app.approver.identity.id);
    await app.change((before) => ({ ...before, lock }));
  };
  return (
    <section>
      <h2>{texts.thisDevice}</h2>
      <dl class="facts">
        <div>
          <dt>{texts.gateway}</dt>
          <dd class="code">{visibleCode(profile?.gateway ?? "")}</dd>
        </div>
        <div>
          <dt>{texts.thisDevice}</dt>
          <dd>
            <Marked text={visible(profile?.id ?? "")} /> · {texts.key} {shortFingerprint(bundle)}
          </dd>
        </div>
        <div>
          <dt>{texts.fingerprint}</dt>
          <dd class="code">{app.approver.identity.keys.fingerprint}</dd>
        </div>
        <div>
          <dt>{texts.storageTitle}</dt>
          <dd>{isKept === true ? texts.storageKept : texts.storageNotKept}</dd>
        </div>
        <div>
          <dt>{texts.lockTitle}</dt>
          <dd>{profile?.lock !== undefined ? texts.lockSet : hasOne === true ? texts.lockUnset : texts.lockNone}</dd>
        </div>
      </dl>
      <Digits digits={fingerprintDigits(bundle)} />
      {hasOne === true && profile?.lock === undefined ? <Act label={texts.lockSetUp} kind="quiet" act={setUp} /> : null}
      <Act label={texts.recoveryMake} busy={texts.recoveryMaking} kind="quiet" act={() => makeRecoveryCode(app)} />
    </section>
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
    <section>
      <h2>{texts.revokeTitle}</h2>
      <p class="note">{texts.revokeText}</p>
      {(profile?.vouched ?? []).map((device) => (
        <p key={device.fingerprint} class="vouched">
          <span>
            {visible(device.approverId)} · {device.short} ·{" "}
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
    </section>
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
    <section>
      <h2>{texts.forgetTitle}</h2>
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
    </section>
  );
}
