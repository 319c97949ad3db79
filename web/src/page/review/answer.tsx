// The answer bar: reject is one action; approve says what was not opened, and never happens by accident.

import { useEffect, useState } from "preact/hooks";

import { hasLock } from "../../keys/lock.ts";
import type { Action, Edit, OpenedRequest, Payload } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { isMeant, isTyping, meant, screenChanged } from "../guard.ts";
import { Icon } from "../icons.tsx";
import type { Card } from "../inbox.ts";
import { messageOf } from "../messages.ts";
import { following, showNext } from "../next.ts";
import { Problem, useApp, usePage } from "../parts.tsx";
import { type Answering, Buttons, blockedBy } from "./buttons.tsx";
import { fieldsOf } from "./change.ts";
import { isGrave, type ReviewDocument } from "./document.ts";
import { ChangeSheet, SuggestSheet, suggestionField } from "./editor.tsx";
import { type Offer, ONCE } from "./offer.ts";
import { isAsked as isAskedBy, isQuestion } from "./question.ts";
import type { Shown } from "./reading.ts";
import { AnswerSheet, ScopeSheet, WordsSheet } from "./sheets.tsx";
import { NotSignedError, sign } from "./sign.ts";

type Sheet = "none" | "words" | "scope" | "confirm" | "change" | "suggest";

/** Whether this device has a lock that the page can ask for. */
function useLock(): boolean {
  const { profile } = usePage();
  const [hasOne, setHasOne] = useState(profile?.lock !== undefined);
  useEffect(() => {
    let isThere = true;
    void hasLock().then((has) => isThere && setHasOne((before) => before || has));
    return () => {
      isThere = false;
    };
  }, []);
  return hasOne;
}

export function AnswerBar({
  card,
  content,
  shown,
  openNext,
  chosen = "",
  isChanging = false,
  setChanging = () => undefined,
}: {
  card: Card;
  content: ReviewDocument;
  shown: Shown;
  openNext: () => void;
  /** What was chosen as the answer to a question. */
  chosen?: string;
  /** Whether it is being changed, which begins at the content. */
  isChanging?: boolean;
  setChanging?: (is: boolean) => void;
}) {
  const app = useApp();
  const { isOnline, after } = usePage();
  const [sheet, setSheet] = useSheet(isChanging, setChanging);
  const [offer, setOffer] = useState<Offer>(ONCE);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const isSerious = isGrave(content.caution);
  const canUnlock = useLock();
  // What nobody can tell is confirmed by the lock of the device, or held as long as what is dangerous.
  const isHeld = content.caution === "dangerous" || (isSerious && !canUnlock);
  const blocked = blockedBy(content.caution, shown);
  const isBlocked = blocked !== undefined;
  // Another button is under the finger now.
  useEffect(() => screenChanged("pane"), [blocked?.[0], isOnline, isBusy, isHeld, chosen]);
  const answer = (outcome: "approve" | "reject", reason: string, action?: Action, edit?: Edit): void => {
    if (isBusy || !isOnline || (outcome === "approve" && isBlocked)) return;
    setBusy(true);
    setProblem("");
    setSheet("none");
    const order = following(app.state.inbox.open, card.requestId);
    const needsLock = isSerious && !isHeld;
    sign(app, card, { outcome, offer, reason, action, shown, isSerious, needsLock, ...(edit && { edit }) })
      // Whoever has changed it waits for what the machine makes of it.
      .then(() => (edit === undefined ? showNext(app, card.requestId, order) : undefined))
      .catch((error: unknown) => setProblem(error instanceof NotSignedError ? error.message : messageOf(error)))
      .finally(() => setBusy(false));
  };
  useKeys({
    sheet,
    setSheet,
    isSerious: isHeld || isSerious,
    isBlocked,
    openNext,
    answer,
    canChange: canChange(card),
    hasActions: (card.request?.actions.length ?? 0) > 0 || (card.payload !== undefined && isQuestion(card.payload)),
  });
  const { request, payload } = card;
  if (request === undefined || payload === undefined) return null;
  const isAsked = !isSerious && isAskedBy(request, payload);
  const isDisabled = isBusy || !isOnline;
  const state = { isHeld, isUnsure: content.caution === "unknown", blockedBy: blocked, isDisabled, isBusy, canUnlock };
  const props = { request, payload, shown, offer, chosen, openNext, answer, ...state };
  return (
    <>
      <div class={`answer-bar${isHeld || isAsked ? " solo" : ""}${after?.next === card.requestId ? " settle" : ""}`}>
        <p class="key-hints" aria-hidden="true">
          {texts.keyHints.map(([key, does]) => (
            <span key={key}>
              <span class="key">{key}</span> {does}
            </span>
          ))}
        </p>
        {problem === "" ? null : <Problem text={problem} />}
        {sheet === "confirm" ? (
          <p class="confirm" role="alert">
            {texts.confirmKey(`${texts.approveScope[offer.scope]}: ${card.headline}`)}
          </p>
        ) : null}
        {!isOnline ? <p class="ended-now">{texts.offlineBar}</p> : null}
        {isHeld || isAsked ? null : (
          <Options {...{ request, payload, offer, setSheet, isDisabled }} isOnce={isSerious || request.isEdited} />
        )}
        <Buttons {...props} say={() => setSheet("words")} />
      </div>
      <Sheets
        sheet={sheet}
        setSheet={setSheet}
        request={request}
        payload={payload}
        offer={offer}
        setOffer={setOffer}
        answer={answer}
        isAsked={isAsked}
        canApprove={!isBlocked && !isSerious && request.actions.length === 0}
      />
    </>
  );
}

/** Which sheet is open. That of a change is opened at the content. */
function useSheet(isChanging: boolean, setChanging: (is: boolean) => void): [Sheet, (next: Sheet) => void] {
  const [sheet, setSheet] = useState<Sheet>("none");
  const change = (next: Sheet): void => {
    screenChanged("pane");
    setChanging(next === "change");
    setSheet(next === "change" ? "none" : next);
  };
  return [isChanging ? "change" : sheet, change];
}

/** Whether something of it may be changed. */
function canChange({ request, payload }: Card): boolean {
  return request !== undefined && payload !== undefined && fieldsOf(request.edits, payload).length > 0;
}

function useKeys({
  sheet,
  setSheet,
  isSerious,
  isBlocked,
  openNext,
  answer,
  canChange,
  hasActions,
}: {
  sheet: Sheet;
  setSheet: (sheet: Sheet) => void;
  isSerious: boolean;
  isBlocked: boolean;
  openNext: () => void;
  answer: Answering;
  canChange: boolean;
  hasActions: boolean;
}): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && sheet !== "none") {
        event.stopImmediatePropagation();
        setSheet("none");
        return;
      }
      if (isTyping(event) || !isMeant(event)) return;
      if (sheet === "confirm") {
        if (event.key === "y") answer("approve", "");
        else setSheet("none");
        return;
      }
      if (sheet !== "none") return;
      if (event.key === "a" && (isSerious || hasActions))
        document.querySelector<HTMLElement>(".answer-bar .approve")?.focus();
      else if (event.key === "a") isBlocked ? openNext() : setSheet("confirm");
      else if (event.key === "r") answer("reject", "");
      else if (event.key === "R") setSheet("words");
      else if (event.key === "s") setSheet("scope");
      else if (event.key === "e" && canChange) setSheet("change");
      else if (event.key === "o") openNext();
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", press, { capture: true });
    return () => document.removeEventListener("keydown", press, { capture: true });
  });
}

function Options({
  payload,
  offer,
  isOnce,
  request,
  setSheet,
  isDisabled,
}: {
  request: OpenedRequest;
  payload: Payload;
  offer: Offer;
  isOnce: boolean;
  setSheet: (sheet: Sheet) => void;
  isDisabled: boolean;
}) {
  const isPlan = payload.kind === "plan";
  const hasActions = request.actions.length > 0;
  return (
    <div class="options">
      <button type="button" class="option" disabled={isDisabled} onClick={meant(() => setSheet("words"))}>
        <Icon name="says" size="s" />
        {isPlan ? texts.askForChanges : texts.rejectWhy}
        <span class="key" aria-hidden="true">
          R
        </span>
      </button>
      {isOnce || isPlan || hasActions ? (
        <span class={isOnce ? "option" : "note"}>{isOnce ? texts.onlyOnce : isPlan ? texts.eachAsks : ""}</span>
      ) : (
        <button type="button" class="option" disabled={isDisabled} onClick={meant(() => setSheet("scope"))}>
          {offer.name}
          <Icon name="down" size="s" />
          <span class="key" aria-hidden="true">
            s
          </span>
        </button>
      )}
    </div>
  );
}

function Sheets({
  sheet,
  setSheet,
  request,
  payload,
  offer,
  setOffer,
  answer,
  isAsked,
  canApprove,
}: {
  sheet: Sheet;
  setSheet: (sheet: Sheet) => void;
  request: OpenedRequest;
  payload: Payload;
  offer: Offer;
  setOffer: (offer: Offer) => void;
  answer: Answering;
  /** Whether it is a question, which words answer. */
  isAsked: boolean;
  canApprove: boolean;
}) {
  const close = (): void => setSheet("none");
  const choose = (chosen: Offer): void => {
    setOffer(chosen);
    close();
  };
  const words = { machine: request.enforcerId, close };
  if (sheet === "words" && isAsked) {
    // A machine that has made up its own choices does not know what else an approval would mean.
    const outcome = isQuestion(payload) ? "approve" : "reject";
    return <AnswerSheet {...words} send={(reason) => answer(outcome, reason)} />;
  }
  const field = request.edits.length === 0 ? suggestionField(payload) : undefined;
  const suggest = field === undefined ? undefined : () => setSheet("suggest");
  if (sheet === "words") return <WordsSheet {...words} answer={answer} canApprove={canApprove} suggest={suggest} />;
  if (sheet === "change")
    return <ChangeSheet {...{ request, payload, close }} send={(edit) => answer("reject", "", undefined, edit)} />;
  if (sheet === "suggest" && field !== undefined)
    return <SuggestSheet {...{ request, field, close }} send={(reason) => answer("reject", reason)} />;
  if (sheet === "scope")
    return <ScopeSheet request={request} payload={payload} chosen={offer} choose={choose} close={close} />;
  return null;
}
