// Stops an agent: from its session, and from a request of it.

import { useEffect, useState } from "preact/hooks";

import { visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { type Asker, askerOf } from "../group.ts";
import { meant, screenChanged } from "../guard.ts";
import { Icon } from "../icons.tsx";
import type { Card } from "../inbox.ts";
import { Act, useApp, usePage } from "../parts.tsx";
import { isStopping, stopStatus } from "../prompts.ts";
import { ONCE } from "../review/offer.ts";
import type { Shown } from "../review/reading.ts";
import { Sheet } from "../review/sheets.tsx";
import { sign } from "../review/sign.ts";
import { By } from "./card.tsx";

/** A stop may be taken for this long: a machine may be off. */
const STOP_MILLIS = 24 * 3_600_000;

/** An agent, as a stop names it. */
interface Target {
  readonly sessionId: string;
  readonly machine: string;
}

/** What became of the order to stop an agent. */
function useStop(sessionId: string | undefined, machine: string) {
  const { prompts } = usePage();
  return sessionId === undefined ? undefined : stopStatus(prompts, { sessionId, machine }, Date.now());
}

/** Whether this device has stopped the agent that a request is from. */
export function useIsStopped({ request }: Card): boolean {
  return isStopping(useStop(request?.session, request?.enforcerId ?? ""));
}

/** Stops the agent of a session, after a question: there is no way back. */
export function StopAgent({ sessionId, machine, asker, isOver }: Target & { asker: Asker; isOver: boolean }) {
  const status = useStop(sessionId, machine);
  const [isAsking, setAsking] = useAsking();
  return (
    <>
      <StopStatus status={status} machine={machine} />
      {isOver || isStopping(status) ? null : (
        <button type="button" class="button quiet" onClick={meant(() => setAsking(true))}>
          {texts.stopAgent}
        </button>
      )}
      {isAsking ? <StopSheet {...{ sessionId, machine, asker }} close={() => setAsking(false)} /> : null}
    </>
  );
}

/** The same at a request: one quiet row, which asks. It says so where there is no way. */
export function StopAgentRow({ card: { request, payload }, ask }: { card: Card; ask: () => void }) {
  const machine = request?.enforcerId ?? "";
  const status = useStop(request?.session, machine);
  if (request?.session === undefined) {
    const isOfHook = payload?.call?.kind.startsWith("hook.") === true;
    return isOfHook ? <p class="note">{texts.stopAgentNoWay(visible(machine))}</p> : null;
  }
  return (
    <>
      <StopStatus status={status} machine={machine} />
      {isStopping(status) ? null : (
        <button type="button" class="card fold-row" onClick={meant(ask)}>
          <Icon name="halt" />
          <span class="grow">{texts.stopAgent}</span>
          <Icon name="right" />
        </button>
      )}
    </>
  );
}

/** What a request asks before its agent is stopped. */
export function StopSheetOf({ card, isOpen, close }: { card: Card; isOpen: boolean; close: () => void }) {
  const { request } = card;
  const asker = askerOf(card);
  if (request?.session === undefined || asker === undefined) return null;
  const target = { sessionId: request.session, machine: request.enforcerId };
  return <StopSheet {...target} asker={asker} isOfRequest={isOpen} close={close} />;
}

/** In place of the answers, once its agent is stopped: the machine takes the request back by itself. */
export function StoppedBar({ card, shown }: { card: Card; shown: Shown }) {
  const app = useApp();
  const { isOnline } = usePage();
  // Another button is under the finger now.
  useEffect(() => screenChanged("pane"), []);
  const reject = (): Promise<void> =>
    sign(app, card, { outcome: "reject", offer: ONCE, reason: "", action: undefined, shown, isSerious: false });
  return (
    <div class="answer-bar brief">
      <p class="ended-now" role="status">
        <Icon name="halt" />
        <span>{texts.stoppedWaits(visible(card.request?.enforcerId ?? ""))}</span>
      </p>
      <Act label={texts.reject} busy={texts.signing} kind="reject" act={reject} disabled={!isOnline} />
    </div>
  );
}

/** Whether it is asked. What comes and goes is under the finger. */
export function useAsking(): [boolean, (is: boolean) => void] {
  const [isAsking, setAsking] = useState(false);
  const change = (is: boolean): void => {
    screenChanged("pane");
    setAsking(is);
  };
  return [isAsking, change];
}

function StopStatus({ status, machine }: { status: ReturnType<typeof useStop>; machine: string }) {
  if (status === undefined) return null;
  return (
    <div class="notice" role="status">
      <Icon name="halt" />
      <p>
        {isStopping(status) ? <b>{texts.stopAgentSent} </b> : null}
        {texts.stopAgentStatus[status](visible(machine))}
      </p>
    </div>
  );
}

function StopSheet({
  sessionId,
  machine,
  asker,
  isOfRequest = false,
  close,
}: Target & { asker: Asker; isOfRequest?: boolean; close: () => void }) {
  const app = useApp();
  const [why, setWhy] = useState("");
  const stop = async (): Promise<void> => {
    const now = app.approver.http.clock.now();
    const expiresAt = now.plus(STOP_MILLIS);
    const draft = { target: "other", content: { stop: why }, expiresAt, sessionId } as const;
    const prompt = await app.approver.buildPrompt(machine, draft, app.state.pins);
    const text = why.trim() === "" ? texts.stopAgent : `${texts.stopAgent}: ${why.trim()}`;
    const times = { sentAt: `${now}`, expiresAt: `${expiresAt}` };
    try {
      await app.prompts.send({ enforcerId: machine, text, sessionId, isStop: true, ...times }, prompt);
    } catch (error) {
      // What is kept is sent again by itself.
      if (!app.state.prompts.some(({ requestId }) => requestId === prompt.requestId)) throw error;
    }
    close();
  };
  return (
    <Sheet
      title={texts.stopAgentTitle}
      close={close}
      action={<Act label={texts.stopAgentNow} busy={texts.stopAgentSending} kind="danger" act={stop} />}
    >
      <By asker={asker} />
      <p>
        {texts.stopAgentText(visible(machine))} {isOfRequest ? texts.stopAgentThis : null}
      </p>
      <p>{texts.stopAgentLimits}</p>
      <label>
        {texts.stopAgentWhy}
        <input type="text" maxLength={500} value={why} onInput={(event) => setWhy(event.currentTarget.value)} />
      </label>
    </Sheet>
  );
}
