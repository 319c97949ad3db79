// The answer bar: reject is one action; approve says what was not opened, and never happens by accident.

import { useEffect, useState } from "preact/hooks";

import { type Action, type OpenedRequest, type Payload, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { isMeant, isTyping, meant, screenChanged } from "../guard.ts";
import type { Card } from "../inbox.ts";
import { messageOf } from "../messages.ts";
import { Problem, useApp, usePage } from "../parts.tsx";
import { type Caution, isGrave, type ReviewDocument } from "./document.ts";
import { HoldButton } from "./hold.tsx";
import { type Offer, ONCE } from "./offer.ts";
import type { Shown } from "./reading.ts";
import { ScopeSheet, WordsSheet } from "./sheets.tsx";
import { NotSignedError, sign } from "./sign.ts";

type Sheet = "none" | "words" | "scope" | "confirm";

/** What was not opened, in words; empty if everything was. */
export function missing({ files, ofFiles, lines, ofLines }: Shown): string {
  const parts = [
    ...(files < ofFiles ? [texts.unopened(ofFiles - files, ofFiles)] : []),
    ...(lines < ofLines ? [texts.notSeen(ofLines - lines, ofLines)] : []),
  ];
  return parts.join(", ");
}

/** What has to be done before it can be approved, in words; `undefined` if nothing has. */
export function blockedBy(caution: Caution, { files, ofFiles, unread }: Shown): string | undefined {
  if (caution !== "none" && files < ofFiles) return texts.openFirst(ofFiles - files);
  return unread > 0 ? texts.readFirst(unread) : undefined;
}

export function AnswerBar({
  card,
  content,
  shown,
  openNext,
}: {
  card: Card;
  content: ReviewDocument;
  shown: Shown;
  openNext: () => void;
}) {
  const app = useApp();
  const { isOnline } = usePage();
  const [sheet, setSheetNow] = useState<Sheet>("none");
  const [offer, setOffer] = useState<Offer>(ONCE);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const isSerious = isGrave(content.caution);
  const blocked = blockedBy(content.caution, shown);
  const isBlocked = blocked !== undefined;
  // Another button is under the finger now.
  useEffect(() => screenChanged("pane"), [blocked, isOnline, isBusy]);
  const setSheet = (next: Sheet): void => {
    screenChanged("pane");
    setSheetNow(next);
  };
  const answer = (outcome: "approve" | "reject", reason: string, action?: Action): void => {
    if (isBusy || !isOnline || (outcome === "approve" && isBlocked)) return;
    setBusy(true);
    setProblem("");
    setSheetNow("none");
    sign(app, card, { outcome, offer, reason, action, shown, isSerious })
      .catch((error: unknown) => setProblem(error instanceof NotSignedError ? error.message : messageOf(error)))
      .finally(() => setBusy(false));
  };
  useKeys({
    sheet,
    setSheet,
    isSerious,
    isBlocked,
    openNext,
    answer,
    hasActions: (card.request?.actions.length ?? 0) > 0,
  });
  const { request, payload } = card;
  if (request === undefined || payload === undefined) return null;
  return (
    <>
      <div class="answer-bar">
        {problem === "" ? null : <Problem text={problem} />}
        {isSerious ? <Warning caution={content.caution} /> : null}
        {sheet === "confirm" ? (
          <p class="confirm" role="alert">
            {texts.confirmKey(`${texts.approveScope[offer.scope]}: ${card.headline}`)}
          </p>
        ) : null}
        <Options offer={offer} setSheet={setSheet} isDisabled={isBusy || !isOnline} />
        {!isOnline ? <p class="ended-now">{texts.offlineBar}</p> : null}
        <Buttons
          request={request}
          shown={shown}
          offer={offer}
          isSerious={isSerious}
          blockedBy={blocked}
          isDisabled={isBusy || !isOnline}
          isBusy={isBusy}
          openNext={openNext}
          answer={answer}
        />
      </div>
      <Sheets
        sheet={sheet}
        setSheet={setSheet}
        request={request}
        payload={payload}
        offer={offer}
        setOffer={setOffer}
        answer={answer}
        canApprove={!isBlocked && !isSerious && request.actions.length === 0}
      />
    </>
  );
}

function Warning({ caution }: { caution: Caution }) {
  const isUnknown = caution === "unknown";
  return (
    <p class="caution">
      <strong>{isUnknown ? texts.unknown : texts.dangerous}.</strong>{" "}
      {isUnknown ? texts.unknownHelp : texts.dangerousHelp}
    </p>
  );
}

type Answering = (outcome: "approve" | "reject", reason: string, action?: Action) => void;

function useKeys({
  sheet,
  setSheet,
  isSerious,
  isBlocked,
  openNext,
  answer,
  hasActions,
}: {
  sheet: Sheet;
  setSheet: (sheet: Sheet) => void;
  isSerious: boolean;
  isBlocked: boolean;
  openNext: () => void;
  answer: Answering;
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
      else if (event.key === "o") openNext();
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", press, { capture: true });
    return () => document.removeEventListener("keydown", press, { capture: true });
  });
}

function Options({
  offer,
  setSheet,
  isDisabled,
}: {
  offer: Offer;
  setSheet: (sheet: Sheet) => void;
  isDisabled: boolean;
}) {
  return (
    <div class="options">
      <button type="button" class="option" disabled={isDisabled} onClick={meant(() => setSheet("scope"))}>
        {texts.scope}: {offer.name}
      </button>
      <button type="button" class="option" disabled={isDisabled} onClick={meant(() => setSheet("words"))}>
        {texts.words}…
      </button>
    </div>
  );
}

/** The classes of a button: what it answers, and how the machine wants it to look. Without a machine's wish there is no style. */
function styled(decision: "approve" | "reject", action: Action | undefined): string {
  return action === undefined ? `button ${decision}` : `button ${decision} ${action.style}`;
}

function Buttons({
  request,
  shown,
  offer,
  isSerious,
  blockedBy: reason,
  isDisabled,
  isBusy,
  openNext,
  answer,
}: {
  request: OpenedRequest;
  shown: Shown;
  offer: Offer;
  isSerious: boolean;
  blockedBy: string | undefined;
  isDisabled: boolean;
  isBusy: boolean;
  openNext: () => void;
  answer: Answering;
}) {
  const isBlocked = reason !== undefined;
  const note = missing(shown);
  const approve = (label: string, action?: Action) => {
    const key = action?.id ?? "approve";
    const act = (): void => answer("approve", "", action);
    if (isSerious || action?.style === "danger")
      return (
        <HoldButton
          key={key}
          label={action === undefined ? texts.hold : `${texts.hold}: ${label}`}
          note={note}
          kind={action?.style ?? ""}
          isDisabled={isDisabled}
          done={act}
        />
      );
    return (
      <button key={key} type="button" class={styled("approve", action)} disabled={isDisabled} onClick={meant(act)}>
        <span>{isBusy ? texts.signing : label}</span>
        {note === "" ? null : <small>{note}</small>}
      </button>
    );
  };
  const reject = (label: string, action?: Action) => (
    <button
      key={action?.id ?? "reject"}
      type="button"
      class={styled("reject", action)}
      disabled={isDisabled}
      onClick={meant(() => answer("reject", "", action))}
    >
      <span>{label}</span>
    </button>
  );
  const blocked = (
    <button type="button" class="button blocked" disabled={isDisabled} onClick={meant(openNext)}>
      <span>{reason}</span>
    </button>
  );
  const { actions } = request;
  if (actions.length === 0) {
    return (
      <div class="buttons">
        {reject(texts.reject)}
        {isBlocked ? blocked : approve(texts.approveScope[offer.scope])}
      </div>
    );
  }
  // The captions are the machine's words, and stand on our own buttons.
  const own = actions.map((action) => {
    const label = visible(action.caption);
    if (action.decision === "reject") return reject(label, action);
    return isBlocked ? null : approve(label, action);
  });
  const hasReject = actions.some(({ decision }) => decision === "reject");
  return (
    <div class="buttons many">
      {own}
      {isBlocked ? blocked : null}
      {hasReject ? null : reject(texts.reject)}
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
  canApprove,
}: {
  sheet: Sheet;
  setSheet: (sheet: Sheet) => void;
  request: OpenedRequest;
  payload: Payload;
  offer: Offer;
  setOffer: (offer: Offer) => void;
  answer: Answering;
  canApprove: boolean;
}) {
  const close = (): void => setSheet("none");
  const choose = (chosen: Offer): void => {
    setOffer(chosen);
    close();
  };
  if (sheet === "words") return <WordsSheet close={close} answer={answer} canApprove={canApprove} />;
  if (sheet === "scope")
    return <ScopeSheet request={request} payload={payload} chosen={offer} choose={choose} close={close} />;
  return null;
}
