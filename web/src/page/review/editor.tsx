// Where a person writes what should run instead: a change that the machine asks about again, or a suggestion to the agent.

import { useId, useMemo, useState } from "preact/hooks";

import { type Edit, type OpenedRequest, type Payload, quoted, visible } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { meant } from "../guard.ts";
import { Marked, TimeLeft, usePage } from "../parts.tsx";
import { type Draft, draftProblem, editOf, type Field, fieldsOf, markedLines } from "./change.ts";
import { Sheet } from "./sheets.tsx";

/** What was written and not sent, for as long as the page has the request. */
const drafts = new WeakMap<OpenedRequest, Draft>();
const suggestions = new WeakMap<OpenedRequest, Draft>();

function useDraft(request: OpenedRequest, kept = drafts): [Draft, (place: string, text: string) => void] {
  const [draft, setDraft] = useState<Draft>(() => kept.get(request) ?? {});
  const write = (place: string, text: string): void => {
    const next = { ...draft, [place]: text };
    kept.set(request, next);
    setDraft(next);
  };
  return [draft, write];
}

/** Changes what may be changed. Nothing runs by it: the machine asks again. */
export function ChangeSheet({
  request,
  payload,
  close,
  send,
}: {
  request: OpenedRequest;
  payload: Payload;
  close: () => void;
  send: (edit: Edit) => void;
}) {
  const { isOnline } = usePage();
  const fields = useMemo(() => fieldsOf(request.edits, payload), [request, payload]);
  const [draft, write] = useDraft(request);
  const problem = isOnline ? draftProblem(fields, draft) : texts.offlineBar;
  const left = request.edits.length - fields.length;
  return (
    <Sheet
      title={texts.changeTitle}
      close={close}
      isWriting
      action={
        <button
          type="button"
          class="button primary"
          disabled={problem !== ""}
          onClick={meant(() => send(editOf(fields, draft)))}
        >
          {texts.sendChange}
        </button>
      }
    >
      <Fields fields={fields} draft={draft} write={write} />
      {left === 0 ? null : <p class="note">{texts.changeLeftOut(left)}</p>}
      <About problem={problem} note={texts.changeNote(visible(request.enforcerId))} request={request} />
    </Sheet>
  );
}

/** The command of a request that can't be changed, as a field; `undefined` if it is no command. */
export function suggestionField(payload: Payload): Field | undefined {
  if (payload.kind !== "command") return undefined;
  const { invocation } = payload;
  const text = "shell" in invocation ? invocation.shell : invocation.argv.map(quoted).join(" ");
  const before = text.replace(/\r\n?/g, "\n");
  return { place: "", label: texts.fieldCommand, before, lineBreak: "\n", isCommand: true };
}

/** Rejects with another command, in words for the agent. */
export function SuggestSheet({
  request,
  field,
  close,
  send,
}: {
  request: OpenedRequest;
  field: Field;
  close: () => void;
  send: (reason: string) => void;
}) {
  const [draft, write] = useDraft(request, suggestions);
  const reason = texts.suggestion(draft[""] ?? field.before);
  const isTooLong = reason.length > MAX_REASON;
  const problem = isTooLong ? texts.suggestTooLong(MAX_REASON) : draftProblem([field], draft);
  return (
    <Sheet
      title={texts.suggest}
      close={close}
      isWriting
      action={
        <button type="button" class="button solid" disabled={problem !== ""} onClick={meant(() => send(reason))}>
          {texts.rejectWithWords}
        </button>
      }
    >
      <Fields fields={[field]} draft={draft} write={write} />
      <About problem={problem} note={texts.suggestNote(visible(request.enforcerId))} request={request} />
    </Sheet>
  );
}

/** As long as other words of a rejection. */
const MAX_REASON = 4_000;

/** What happens next, how long there is time for it, and why it can't be sent yet. */
function About({ problem, note, request }: { problem: string; note: string; request: OpenedRequest }) {
  return (
    <div class="about">
      <p class="note">{note}</p>
      <p class="between">
        <span class="note" role="status">
          {problem}
        </span>
        <TimeLeft until={request.expiresAt} />
      </p>
    </div>
  );
}

function Fields({
  fields,
  draft,
  write,
}: {
  fields: readonly Field[];
  draft: Draft;
  write: (place: string, text: string) => void;
}) {
  return (
    <>
      {fields.map((field) => (
        <OneField key={field.place} field={field} text={draft[field.place] ?? field.before} write={write} />
      ))}
    </>
  );
}

/** As an attribute: the property of this name is true or false, and takes `off` for true. */
function writesAsTyped(area: HTMLTextAreaElement | null): void {
  area?.setAttribute("autocorrect", "off");
}

/** A line of a phone has so many characters. */
const LINE = 32;

function rowsOf(text: string): number {
  const rows = text.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / LINE)), 0);
  return Math.min(12, Math.max(3, rows));
}

function OneField({
  field: { place, label, before },
  text,
  write,
}: {
  field: Field;
  text: string;
  write: (place: string, text: string) => void;
}) {
  const marks = useId();
  const marked = useMemo(() => markedLines(text), [text]);
  return (
    <div class="stack">
      <label>
        <Marked text={label} />
        <textarea
          class="code"
          rows={rowsOf(before)}
          value={text}
          autocomplete="off"
          ref={writesAsTyped}
          autocapitalize="off"
          spellcheck={false}
          aria-describedby={marked.length === 0 ? undefined : marks}
          onInput={(event) => write(place, event.currentTarget.value)}
        />
      </label>
      {marked.length === 0 ? null : (
        <div id={marks} class="marks">
          <p class="note">{texts.changeMarks}</p>
          {marked.slice(0, MAX_MARKED).map(({ number, text: line }) => (
            <p key={number} class="code">
              <span class="no">{number}</span> <Marked text={line} />
            </p>
          ))}
          {marked.length > MAX_MARKED ? <p class="note">{texts.changeMoreMarks(marked.length - MAX_MARKED)}</p> : null}
        </div>
      )}
    </div>
  );
}

const MAX_MARKED = 20;
