// The recovery code: shown once, and used when every other device is lost.

import { useState } from "preact/hooks";

import { lockKey } from "../../keys/lock.ts";
import {
  CallError,
  type Card,
  fingerprintDigits,
  formatVoucher,
  MAX_VOUCH_MILLIS,
  newPin,
  parseCard,
  parseRecoveryCode,
  recoveryKeys,
  signStatement,
  visibleCode,
  vouchFor,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { screenChanged } from "../guard.ts";
import { Icon } from "../icons.tsx";
import { Act, CopyText, Digits, Problem, Screen, useApp } from "../parts.tsx";
import { go } from "../route.ts";
import { changePins, lockTold } from "../trust.ts";

export function RecoveryCodeScreen({ code, untold }: { code: string; untold: readonly string[] }) {
  const app = useApp();
  const done = async (): Promise<void> => {
    app.set({ recovery: undefined });
  };
  return (
    <main class="alone">
      <Screen title={texts.recoveryTitle} note={texts.recoveryText} kind="alone">
        <p class="card recovery code">
          {code.split("-").map((group) => (
            <span key={group}>{group}</span>
          ))}
        </p>
        <div class="notice">
          <Icon name="key" />
          <p>{texts.recoveryOnce}</p>
        </div>
        {untold.length === 0 ? null : <Problem text={texts.recoveryUntold(untold.map(visibleCode).join(", "))} />}
        <Act label={texts.recoveryDone} kind="primary" act={done} />
      </Screen>
    </main>
  );
}

export function RecoverScreen() {
  const app = useApp();
  const [code, setCode] = useState("");
  const [cardText, setCardText] = useState("");
  const [card, setCard] = useState<Card>();
  const [voucher, setVoucher] = useState("");
  const check = async (): Promise<void> => {
    parseRecoveryCode(code).fill(0);
    screenChanged();
    setCard(parseCard("machine", cardText));
  };
  const use = async (machine: Card): Promise<void> => {
    const { identity, http } = app.approver;
    const own = app.state.profile?.lock;
    const lock = own === undefined ? undefined : lockKey(own);
    const [seed, at] = [parseRecoveryCode(code), http.clock.now()];
    const keys = await recoveryKeys(seed);
    seed.fill(0);
    const claim = vouchFor({
      approverId: identity.id,
      bundle: identity.keys.bundle,
      label: "",
      until: at.plus(MAX_VOUCH_MILLIS),
      lock,
    });
    const statement = await signStatement(keys, { enforcerId: machine.id, by: identity.id, at }, claim);
    await app.approver.present(statement).catch((error: unknown) => {
      const isUnknown = error instanceof CallError && error.gatewayCode === "PROTO_ERR_SIGNATURE_INVALID";
      throw isUnknown ? new Error(texts.recoverUnknown) : error;
    });
    const pin = newPin({ role: "enforcer", id: machine.id }, machine.bundle, at);
    // A machine pins the lock of a new device only.
    const isNew = app.state.pins.get(pin.fingerprint) === undefined;
    await changePins(app, (pins) => pins.add(pin));
    if (isNew && lock !== undefined) await lockTold(app, pin.fingerprint);
    setCode("");
    setVoucher(formatVoucher({ machine, statement }));
  };
  if (voucher !== "") {
    return (
      <Screen title={texts.recoverTitle}>
        <p>{texts.recoverDone}</p>
        <CopyText text={voucher} label={texts.voucher} />
        <button type="button" class="button" onClick={() => go({ name: "devices" })}>
          {texts.devices}
        </button>
      </Screen>
    );
  }
  if (card !== undefined) {
    return (
      <Screen title={texts.digitsTitle}>
        <p>{texts.recoverCompare(visibleCode(card.id))}</p>
        <Digits digits={fingerprintDigits(card.bundle)} />
        <div class="pair even">
          <button type="button" class="button quiet" onClick={() => setCard(undefined)}>
            {texts.digitsDiffer}
          </button>
          <Act label={texts.digitsSame} kind="primary" act={() => use(card)} />
        </div>
      </Screen>
    );
  }
  return (
    <Screen title={texts.recoverTitle}>
      <p>{texts.recoverText}</p>
      <label>
        {texts.recoveryCode}
        <input
          class="code"
          type="text"
          autocomplete="off"
          spellcheck={false}
          value={code}
          onInput={(event) => setCode(event.currentTarget.value)}
        />
      </label>
      <label>
        {texts.machineCard}
        <textarea class="code" rows={3} value={cardText} onInput={(event) => setCardText(event.currentTarget.value)} />
      </label>
      <Act label={texts.recoverGo} kind="primary" act={check} />
    </Screen>
  );
}
