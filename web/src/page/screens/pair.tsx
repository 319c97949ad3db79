// Pairing with a machine: by its link, or by a typed code and thirty digits that people compare.

import { useEffect, useRef, useState } from "preact/hooks";

import { LockError } from "../../keys/lock.ts";
import {
  CallError,
  type LockKey,
  type Paired,
  type PairingLink,
  parseConnectLink,
  parseJoinLink,
  parsePairingCode,
  parsePairingLink,
  shortFingerprint,
  visible,
  visibleCode,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { meant, screenChanged } from "../guard.ts";
import { messageOf } from "../messages.ts";
import { lockToPair, makeRecoveryCode, registerKeptRecovery, removePairs } from "../pairing.ts";
import { Act, Digits, Problem, Screen, useApp, usePage } from "../parts.tsx";
import { go } from "../route.ts";
import { keepPairing, stopForPairing } from "../trust.ts";
import { CodeProof, FromItsScreen } from "./machine.tsx";
import { Scanner } from "./scanner.tsx";

type Step =
  | { readonly name: "ask" }
  | { readonly name: "link"; readonly link: PairingLink; readonly isMeant: boolean }
  | { readonly name: "digits"; readonly paired: Paired; readonly digits: string; readonly isLockTold: boolean }
  | { readonly name: "differ" }
  | { readonly name: "done"; readonly machine: string; readonly problem: string };

/** Keeps a pairing; whether the machine was told of the lock of this device. */
type Keep = (paired: Paired, isLockTold: boolean) => Promise<void>;

/** What a text is: a link, or a code. */
type Input = { readonly link: PairingLink } | { readonly code: string };

/** The pairing in a link; of one that joins too, the second half. */
function pairingOf(text: string): PairingLink {
  return /\/connect#/.test(text) ? parseConnectLink(text).pairing : parsePairingLink(text);
}

function read(text: string): Input {
  try {
    return { link: pairingOf(text) };
  } catch {
    return { code: parsePairingCode(text.trim()) };
  }
}

export function PairScreen({ link }: { link: string | undefined }) {
  const app = useApp();
  const { isConnecting } = usePage();
  const [step, setStep] = useState<Step>(() => first(link, isConnecting));
  const show = (next: Step): void => {
    screenChanged();
    setStep(next);
  };
  useEffect(() => setStep(first(link, isConnecting)), [link]);
  const leave = (): void => {
    app.set({ link: undefined, isConnecting: false });
    go({ name: "inbox" });
  };
  const keep: Keep = async (paired, isLockTold) => {
    if (!(await keepPairing(app, paired, isLockTold))) return leave();
    const machine = paired.pin.party.id;
    const problem = await registerKeptRecovery(app, machine).then(() => "", messageOf);
    show({ name: "done", machine, problem });
  };
  return (
    <div class="alone">
      {step.name === "ask" ? <Ask wrong={link} show={show} leave={leave} keep={keep} /> : null}
      {step.name === "link" ? (
        step.isMeant ? (
          <Connecting link={step.link} keep={keep} leave={leave} />
        ) : (
          <LinkQuestion link={step.link} keep={keep} leave={leave} />
        )
      ) : null}
      {step.name === "digits" ? <Compare step={step} show={show} keep={keep} /> : null}
      {step.name === "differ" ? (
        <Screen title={texts.digitsDiffer}>
          <Problem text={texts.digitsDifferDone} />
          <button type="button" class="button" onClick={leave}>
            {texts.toInbox}
          </button>
        </Screen>
      ) : null}
      {step.name === "done" ? <Done machine={step.machine} problem={step.problem} leave={leave} /> : null}
    </div>
  );
}

function first(link: string | undefined, isMeant: boolean): Step {
  try {
    return link === undefined ? { name: "ask" } : { name: "link", link: pairingOf(link), isMeant };
  } catch {
    return { name: "ask" };
  }
}

function isInvitation(text: string): boolean {
  try {
    parseJoinLink(text);
    return true;
  } catch {
    return false;
  }
}

/** Whether a gateway may have refused a pairing for the lock in it: one that knows no locks takes no member that it does not know. */
function isLockRefused(error: unknown): boolean {
  return error instanceof CallError && (error.status === 400 || error.status === 422);
}

/** Pairs with the lock of this device. When that has failed, or was refused, the person may go on without it. */
function useLockToPair(attempt: (lock: LockKey | undefined) => Promise<void>) {
  const app = useApp();
  const [hasFailed, setFailed] = useState(false);
  const pair = async (): Promise<void> => {
    const lock = await lockToPair(app).catch((error: unknown) => {
      if (!(error instanceof LockError)) throw error;
      setFailed(true);
      throw new Error(texts.lockPairFailed);
    });
    await attempt(lock).catch((error: unknown) => {
      if (lock === undefined || !isLockRefused(error)) throw error;
      setFailed(true);
      throw new Error(texts.lockRefused, { cause: error });
    });
  };
  const skip = hasFailed ? (
    <Act label={texts.lockSkip} busy={texts.pairing} kind="quiet" act={() => attempt(undefined)} />
  ) : null;
  return { pair, skip };
}

function Ask({
  wrong,
  show,
  leave,
  keep,
}: {
  wrong: string | undefined;
  show: (step: Step) => void;
  leave: () => void;
  keep: Keep;
}) {
  const app = useApp();
  const { profile } = usePage();
  const first =
    wrong === undefined ? "" : isInvitation(wrong) ? texts.alreadyJoined(visible(profile?.id ?? "")) : texts.notALink;
  const [text, setText] = useState("");
  const [problem, setProblem] = useState(first);
  const [isScanning, setScanning] = useState(false);
  const scanned = (value: string): boolean => {
    try {
      show({ name: "link", link: pairingOf(value), isMeant: false });
      return true;
    } catch (error) {
      setProblem(messageOf(error));
      return false;
    }
  };
  const code = useRef("");
  const byCode = useLockToPair(async (lock) => {
    const [paired, isLockTold] = [await app.approver.pairByCode(code.current, lock), lock !== undefined];
    if (paired.digits === undefined) await keep(paired, isLockTold);
    else show({ name: "digits", paired, digits: paired.digits, isLockTold });
  });
  const pair = async (): Promise<void> => {
    setProblem("");
    const input = read(text);
    if ("link" in input) return show({ name: "link", link: input.link, isMeant: false });
    code.current = input.code;
    await byCode.pair();
  };
  return (
    <Screen title={texts.pairTitle}>
      <p>{texts.pairText}</p>
      {isScanning ? <Scanner found={scanned} close={() => setScanning(false)} /> : null}
      <label>
        {texts.pairInput}
        <input
          class="code"
          type="text"
          autocomplete="off"
          autocapitalize="characters"
          spellcheck={false}
          placeholder={texts.pairHint}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      {problem === "" ? null : <Problem text={problem} />}
      <div class="pair even">
        <button type="button" class="button quiet" onClick={meant(leave)}>
          {texts.pairLater}
        </button>
        <button type="button" class="button quiet" onClick={meant(() => setScanning(true))}>
          {texts.scan}
        </button>
        <Act label={texts.pair} busy={texts.pairing} kind="primary" act={pair} />
      </div>
      {byCode.skip}
    </Screen>
  );
}

/** A link that is answered, and how it goes on. */
interface LinkStep {
  readonly link: PairingLink;
  readonly keep: Keep;
  readonly leave: () => void;
}

/** Pairs, and shows a stop where keys were replaced. */
function usePairing({ link, keep, leave }: LinkStep) {
  const app = useApp();
  return useLockToPair(async (lock) => {
    try {
      await keep(await app.approver.pairByLink(link, app.state.profile?.device, lock), lock !== undefined);
    } catch (error) {
      // Unknown, used and expired codes are the same to the relay.
      if (error instanceof CallError && error.status === 404) throw new Error(texts.codeEnded);
      if (!stopForPairing(app, link.enforcerId, error)) throw error;
      leave();
    }
  });
}

/** The second half of one code: the person has said yes to both. Joined but not paired is where it stands until it succeeds. */
function Connecting({ link, keep, leave }: LinkStep) {
  const { pair, skip } = usePairing({ link, keep, leave });
  const [problem, setProblem] = useState("");
  const attempt = (): Promise<void> => pair().catch((error: unknown) => setProblem(messageOf(error)));
  useEffect(() => void attempt(), []);
  const machine = visibleCode(link.enforcerId);
  if (problem === "") {
    return (
      <Screen title={texts.connectingTitle(machine)}>
        <p role="status">{texts.pairing}</p>
      </Screen>
    );
  }
  return (
    <Screen title={texts.joinedOnlyTitle} note={texts.joinedOnlyText(machine)} kind="alone">
      <Problem text={problem} />
      <div class="pair even">
        <button type="button" class="button quiet" onClick={meant(leave)}>
          {texts.pairLater}
        </button>
        <Act label={texts.tryAgain} busy={texts.pairing} kind="primary" act={pair} />
      </div>
      {skip}
    </Screen>
  );
}

function LinkQuestion({ link, keep, leave }: LinkStep) {
  const { profile } = usePage();
  const isOther = link.gateway !== profile?.gateway;
  const { pair, skip } = usePairing({ link, keep, leave });
  return (
    <Screen title={texts.pairQuestion(visibleCode(link.enforcerId))} note={texts.pairWarning} kind="alone">
      <FromItsScreen link={link} />
      {isOther ? <Problem text={texts.pairOtherGateway} /> : null}
      <CodeProof link={link} />
      <div class="pair even">
        <button type="button" class="button quiet" onClick={leave}>
          {texts.cancel}
        </button>
        <Act label={texts.connect} busy={texts.pairing} kind="primary" act={pair} disabled={isOther} />
      </div>
      {skip}
    </Screen>
  );
}

function Compare({
  step: { paired, digits, isLockTold },
  show,
  keep,
}: {
  step: Extract<Step, { name: "digits" }>;
  show: (step: Step) => void;
  keep: Keep;
}) {
  const app = useApp();
  /** The gateway has a pair that nobody confirmed. */
  const refuse = async (): Promise<void> => {
    show({ name: "differ" });
    await removePairs(app, paired.pin.party.id);
  };
  return (
    <Screen title={texts.digitsTitle}>
      <p>{texts.digitsText(visibleCode(paired.pin.party.id))}</p>
      <Digits digits={digits} />
      <div class="pair even">
        <Act label={texts.digitsDiffer} kind="danger" act={refuse} />
        <Act label={texts.digitsSame} kind="primary" act={() => keep(paired, isLockTold)} />
      </div>
    </Screen>
  );
}

function Done({ machine, problem, leave }: { machine: string; problem: string; leave: () => void }) {
  const app = useApp();
  const { isConnecting, profile } = usePage();
  const makeCode = async (): Promise<void> => {
    await makeRecoveryCode(app);
    leave();
  };
  return (
    <Screen title={isConnecting ? texts.connectedTitle : texts.pairedTitle}>
      {isConnecting ? (
        <p>{texts.connectedText(visibleCode(machine), shortFingerprint(app.approver.identity.keys.bundle))}</p>
      ) : (
        <p>{texts.pairedText(visibleCode(machine))}</p>
      )}
      {problem === "" ? null : <Problem text={problem} />}
      <button type="button" class="button primary" onClick={leave}>
        {texts.toInbox}
      </button>
      {profile?.recovery === undefined ? (
        <>
          <p class="note">{texts.recoveryOffer}</p>
          <Act label={texts.recoveryMakeFirst} busy={texts.recoveryMaking} kind="quiet" act={makeCode} />
        </>
      ) : null}
    </Screen>
  );
}
