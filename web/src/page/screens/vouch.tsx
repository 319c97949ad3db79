// One device lets another approve: a card, digits that people compare, and a voucher.

import { useState } from "preact/hooks";

import { lockKey } from "../../keys/lock.ts";
import {
  type Card,
  cardDigits,
  fingerprint,
  fingerprintDigits,
  formatBundle,
  formatCard,
  formatVoucher,
  newPin,
  PinError,
  parseCard,
  parseVoucher,
  shortFingerprint,
  type Voucher,
  visible,
  visibleCode,
  vouchFor,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { screenChanged } from "../guard.ts";
import { machines, machinesWithLock, state } from "../pairing.ts";
import { Act, CopyText, Digits, Screen, useApp, usePage } from "../parts.tsx";
import { changePins, lockTold, stopForPin } from "../trust.ts";

const VOUCH_MILLIS = 90 * 86_400_000;

export function VouchScreen() {
  const { pins } = usePage();
  return (
    <Screen title={texts.vouchTitle}>
      {pins.all.length > 0 ? <SignForOther /> : null}
      <NewDevice />
    </Screen>
  );
}

function NewDevice() {
  const app = useApp();
  const [text, setText] = useState("");
  const [voucher, setVoucher] = useState<Voucher>();
  const [done, setDone] = useState("");
  const { profile } = usePage();
  const { id, keys } = app.approver.identity;
  const own = { id, bundle: keys.bundle, lock: profile?.lock === undefined ? undefined : lockKey(profile.lock) };
  const read = async (): Promise<void> => {
    screenChanged();
    setVoucher(parseVoucher(text));
  };
  const take = async ({ machine, statement }: Voucher): Promise<void> => {
    const pin = newPin({ role: "enforcer", id: machine.id }, machine.bundle, app.approver.http.clock.now());
    // A machine pins the lock of a new device only.
    const isNew = app.state.pins.get(pin.fingerprint) === undefined;
    await app.approver.present(statement);
    try {
      await changePins(app, (pins) => pins.add(pin));
      const { claim } = statement;
      if (isNew && claim.type === "vouch" && claim.lock !== undefined) await lockTold(app, pin.fingerprint);
    } catch (error) {
      if (!(error instanceof PinError)) throw error;
      stopForPin(app, pin, error);
      return;
    }
    setVoucher(undefined);
    setDone(texts.voucherDone(visible(machine.id)));
  };
  return (
    <section>
      <h2>{texts.vouchCardTitle}</h2>
      <p>{texts.vouchCardText}</p>
      <Digits digits={cardDigits(own)} />
      <CopyText text={formatCard("device", own)} label={texts.deviceCard} />
      {voucher === undefined ? (
        <>
          <label>
            {texts.voucher}
            <textarea class="code" rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          </label>
          <Act label={texts.voucherAccept} kind="primary" act={read} disabled={text.trim() === ""} />
        </>
      ) : (
        <>
          <p>{texts.voucherCompare(visibleCode(voucher.machine.id))}</p>
          <Digits digits={fingerprintDigits(voucher.machine.bundle)} />
          <div class="pair even">
            <button type="button" class="button quiet" onClick={() => setVoucher(undefined)}>
              {texts.digitsDiffer}
            </button>
            <Act label={texts.digitsSame} kind="primary" act={() => take(voucher)} />
          </div>
        </>
      )}
      {done === "" ? null : <p role="status">{done}</p>}
    </section>
  );
}

function SignForOther() {
  const app = useApp();
  const [text, setText] = useState("");
  const [card, setCard] = useState<Card>();
  const [label, setLabel] = useState("");
  const [vouchers, setVouchers] = useState<readonly { machine: string; text: string }[]>([]);
  const withLock = machinesWithLock(app).map(visible);
  const read = async (): Promise<void> => {
    screenChanged();
    setVouchers([]);
    setCard(parseCard("device", text));
  };
  const signAll = async ({ id, bundle, lock }: Card): Promise<void> => {
    const until = app.approver.http.clock.now().plus(VOUCH_MILLIS);
    const device = {
      approverId: id,
      fingerprint: fingerprint(bundle),
      short: shortFingerprint(bundle),
      keys: formatBundle(bundle),
      ...(label.trim() === "" ? {} : { label: label.trim() }),
      until: `${until}`,
    };
    // What is signed stays when the lock does not confirm the next: the button goes on from there.
    let made = vouchers;
    for (const { party, bundle: keys } of machines(app)) {
      if (made.some(({ machine }) => machine === party.id)) continue;
      const claim = vouchFor({ approverId: id, bundle, label: label.trim(), until, lock });
      const statement = await state(app, party.id, claim);
      if (made.length === 0)
        await app.change((profile) => ({ ...profile, vouched: [...(profile.vouched ?? []), device] }));
      made = [
        ...made,
        { machine: party.id, text: formatVoucher({ machine: { id: party.id, bundle: keys }, statement }) },
      ];
      setVouchers(made);
    }
    setCard(undefined);
  };
  return (
    <section>
      <h2>{texts.vouchSignTitle}</h2>
      <p>{texts.vouchSignText}</p>
      {card === undefined ? (
        <>
          <label>
            {texts.deviceCard}
            <textarea class="code" rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          </label>
          <Act label={texts.recoverGo} kind="primary" act={read} disabled={text.trim() === ""} />
        </>
      ) : (
        <>
          <p>{texts.vouchCompare(visible(card.id))}</p>
          <Digits digits={cardDigits(card)} />
          <label>
            {texts.deviceName}
            <input
              type="text"
              maxLength={60}
              placeholder={texts.deviceNameHint}
              value={label}
              onInput={(event) => setLabel(event.currentTarget.value)}
            />
          </label>
          {withLock.length === 0 ? null : <p class="note">{texts.lockVouches(withLock)}</p>}
          <div class="pair even">
            <button type="button" class="button quiet" onClick={() => setCard(undefined)}>
              {texts.digitsDiffer}
            </button>
            <Act label={texts.vouchSign} kind="primary" act={() => signAll(card)} />
          </div>
        </>
      )}
      {vouchers.length === 0 ? null : <p>{texts.vouchers}</p>}
      {vouchers.map((voucher) => (
        <CopyText key={voucher.machine} text={voucher.text} label={`${texts.voucher} ${visible(voucher.machine)}`} />
      ))}
    </section>
  );
}
