// The buttons of the answer bar. Rejecting is one action; approving says what was not opened, and never happens by accident.

import { type Action, type Edit, type OpenedRequest, type Payload, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { meant } from "../guard.ts";
import { Icon } from "../icons.tsx";
import { OTHER } from "./choices.tsx";
import type { Caution } from "./document.ts";
import { HoldButton } from "./hold.tsx";
import type { Offer } from "./offer.ts";
import { choicesOf, isQuestion } from "./question.ts";
import type { Shown } from "./reading.ts";

export type Answering = (outcome: "approve" | "reject", reason: string, action?: Action, edit?: Edit) => void;

/** What was not opened, in words; empty if everything was. */
export function missing({ files, ofFiles, lines, ofLines }: Shown): string {
  if (files < ofFiles) return texts.unopened(ofFiles - files, ofFiles);
  return lines < ofLines ? texts.notSeen(ofLines - lines, ofLines) : "";
}

/** What has to be done before it can be approved, and how much of it; `undefined` if nothing has. */
export function blockedBy(caution: Caution, shown: Shown): Blocked | undefined {
  const { files, ofFiles, unread } = shown;
  if (caution !== "none" && files < ofFiles) return texts.openFirst(ofFiles - files);
  return unread > 0 ? texts.readFirst(unread) : undefined;
}

/** What has to be done first, and a note about it. */
export type Blocked = readonly [label: string, note: string];

/** The classes of a button: what it answers, and how the machine wants it to look. Without a machine's wish there is no style. */
function styled(decision: "approve" | "reject", action: Action | undefined): string {
  return action === undefined ? `button ${decision}` : `button ${decision} ${action.style}`;
}

export interface ButtonsProps {
  readonly request: OpenedRequest;
  readonly payload: Payload;
  readonly shown: Shown;
  readonly offer: Offer;
  readonly chosen: string;
  /** Whether approving is held for a second. */
  readonly isHeld: boolean;
  readonly isUnsure: boolean;
  readonly canUnlock: boolean;
  readonly blockedBy: Blocked | undefined;
  readonly isDisabled: boolean;
  readonly isBusy: boolean;
  readonly openNext: () => void;
  readonly answer: Answering;
  readonly say: () => void;
}

export function Buttons(props: ButtonsProps) {
  const { request, payload, offer, blockedBy: reason, isUnsure, isHeld } = props;
  const { actions } = request;
  const hasChoices = choicesOf(request, payload).length > 0;
  if (hasChoices && !isHeld && !isUnsure) return <QuestionButtons {...props} />;
  if (actions.length > 0) return <MachineButtons {...props} />;
  if (isQuestion(payload)) return <QuestionButtons {...props} chosen={OTHER} />;
  const approve = payload.kind === "plan" ? texts.approvePlan : texts.approveScope[offer.scope];
  const main = reason === undefined ? <Approve {...props} label={approve} /> : <BlockedButton {...props} />;
  if (!isHeld)
    return (
      <div class="buttons">
        <RejectButton {...props} label={texts.reject} />
        {main}
      </div>
    );
  // Where Approve usually is stands what does no harm.
  return (
    <>
      {main}
      <div class="buttons">
        <RejectButton {...props} label={texts.reject} />
        <button type="button" class="button quiet" disabled={props.isDisabled} onClick={meant(props.say)}>
          <span>{texts.rejectWhy}</span>
          <span class="key" aria-hidden="true">
            R
          </span>
        </button>
      </div>
    </>
  );
}

/** The buttons that a machine asks for. Their captions are its words, and stand on our own buttons. */
function MachineButtons(props: ButtonsProps) {
  const { request, blockedBy: reason } = props;
  const own = request.actions.map((action) => {
    const label = visible(action.caption);
    if (action.decision === "reject") return <RejectButton {...props} key={action.id} label={label} action={action} />;
    return reason === undefined ? <Approve {...props} key={action.id} label={label} action={action} /> : null;
  });
  const hasReject = request.actions.some(({ decision }) => decision === "reject");
  return (
    <div class="buttons many">
      {own}
      {reason === undefined ? null : <BlockedButton {...props} />}
      {hasReject ? null : <RejectButton {...props} label={texts.reject} />}
    </div>
  );
}

/** A question is answered with what was chosen above; nothing is chosen at first. */
function QuestionButtons(props: ButtonsProps) {
  const { request, chosen, isDisabled, isBusy, answer, say, blockedBy: reason } = props;
  const choice = request.actions.find(({ id }) => id === chosen);
  const rejects = request.actions.filter(({ decision }) => decision === "reject");
  const send = meant(() =>
    chosen === OTHER ? say() : choice === undefined ? undefined : answer("approve", "", choice),
  );
  return (
    <div class="buttons">
      {rejects.length === 0 ? <RejectButton {...props} label={texts.dontAnswer} /> : null}
      {rejects.map((action) => (
        <RejectButton {...props} key={action.id} label={visible(action.caption)} action={action} />
      ))}
      {reason === undefined ? (
        <button
          type="button"
          class="button approve"
          disabled={isDisabled || (choice === undefined && chosen !== OTHER)}
          onClick={send}
        >
          <span>{isBusy ? texts.signing : texts.answer}</span>
          {choice === undefined ? null : <small>{visible(choice.caption)}</small>}
          {chosen === OTHER ? <small>{texts.inYourWords}</small> : null}
        </button>
      ) : (
        <BlockedButton {...props} />
      )}
    </div>
  );
}

function Approve({
  request,
  label,
  action,
  shown,
  isHeld,
  isUnsure,
  canUnlock,
  isDisabled,
  isBusy,
  answer,
}: ButtonsProps & { label: string; action?: Action }) {
  const act = (): void => answer("approve", "", action);
  const left = missing(shown);
  if (isHeld || action?.style === "danger")
    return (
      <HoldButton
        label={action === undefined ? texts.hold : `${texts.hold}: ${label}`}
        note={left === "" ? texts.holdHelp(canUnlock) : left}
        kind={action?.style ?? (isUnsure ? "unsure" : "")}
        isDisabled={isDisabled}
        done={act}
      />
    );
  const needed = isUnsure ? texts.onceUnlocked : request.needsPerson ? texts.unlocked : "";
  const note = left === "" ? needed : left;
  return (
    <button type="button" class={styled("approve", action)} disabled={isDisabled} onClick={meant(act)}>
      <span>{isBusy ? texts.signing : label}</span>
      {note === "" ? null : <small>{note}</small>}
      {action === undefined ? (
        <span class="keys-of" aria-hidden="true">
          <span class="key">a</span> <span class="key">y</span>
        </span>
      ) : null}
    </button>
  );
}

function RejectButton({
  label,
  action,
  isDisabled,
  answer,
}: Pick<ButtonsProps, "isDisabled" | "answer"> & { label: string; action?: Action }) {
  return (
    <button
      type="button"
      class={styled("reject", action)}
      disabled={isDisabled}
      onClick={meant(() => answer("reject", "", action))}
    >
      <span>{label}</span>
      {action === undefined ? (
        <span class="key" aria-hidden="true">
          r
        </span>
      ) : null}
    </button>
  );
}

/** In place of approving: it shows what was not read yet. */
function BlockedButton({ isHeld, blockedBy: reason, isDisabled, openNext }: ButtonsProps) {
  const [label, note] = reason ?? ["", ""];
  if (isHeld)
    return (
      <button type="button" class="rail blocked" disabled={isDisabled} onClick={meant(openNext)}>
        <span class="thumb" aria-hidden="true">
          <Icon name="down" />
        </span>
        <span class="label">
          {label}
          <small>{note}</small>
        </span>
      </button>
    );
  return (
    <button type="button" class="button blocked" disabled={isDisabled} onClick={meant(openNext)}>
      <span>{label}</span>
      <small>{note}</small>
    </button>
  );
}
