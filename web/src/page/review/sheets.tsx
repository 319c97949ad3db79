// The sheets over the answer bar: words for the agent, and what an approval covers.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import {
  isDangerousPayload,
  isSerious,
  type OpenedRequest,
  type Payload,
  quoted,
  visible,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { isTyping, meant } from "../guard.ts";
import { Marked } from "../parts.tsx";
import { shownCode } from "./line.ts";
import { canBeAny, hourOffer, type Offer, ONCE, patternArguments, sessionOffer } from "./offer.ts";

/** A sheet. Keys stay in it until it is closed. */
export function Sheet({
  title,
  close,
  action,
  children,
  isWriting = false,
}: {
  title: string;
  close: () => void;
  /** The button that does what the sheet is for. */
  action: ComponentChildren;
  children: ComponentChildren;
  /** Whether there may be much to write: then it is wider, and its buttons stay where a keyboard leaves little room. */
  isWriting?: boolean;
}) {
  const sheet = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    sheet.current?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const isLetter = event.key.length === 1 && event.key !== " " && !isTyping(event);
      if (event.key !== "Escape" && !isLetter) return;
      event.stopImmediatePropagation();
      if (!isLetter) close();
    };
    // Before the keys of what is behind it.
    window.addEventListener("keydown", press, { capture: true });
    return () => window.removeEventListener("keydown", press, { capture: true });
  });
  const stay = (event: KeyboardEvent): void => {
    if (event.key !== "Tab" || sheet.current === null) return;
    const stops = [
      ...sheet.current.querySelectorAll<HTMLElement>("button:not(:disabled), textarea, input, select, a[href]"),
    ];
    const [first, last] = [stops[0], stops.at(-1)];
    const isLeaving = event.shiftKey
      ? document.activeElement === first || document.activeElement === sheet.current
      : document.activeElement === last;
    if (!isLeaving) return;
    event.preventDefault();
    (event.shiftKey ? last : first)?.focus();
  };
  return (
    <div class="sheet-back">
      <section
        class={isWriting ? "sheet writing" : "sheet"}
        role="dialog"
        aria-modal="true"
        aria-label={title}
        tabIndex={-1}
        ref={sheet}
        onKeyDown={stay}
      >
        <h2>{title}</h2>
        {children}
        <div class="pair">
          <button type="button" class="button quiet" onClick={close}>
            {texts.cancel}
          </button>
          {action}
        </div>
      </section>
    </div>
  );
}

export function WordsSheet({
  machine,
  close,
  answer,
  canApprove,
  suggest,
}: {
  machine: string;
  close: () => void;
  answer: (outcome: "approve" | "reject", reason: string) => void;
  canApprove: boolean;
  /** Goes on to suggest another command, if it is one. */
  suggest?: (() => void) | undefined;
}) {
  const [words, setWords] = useState("");
  const isEmpty = words.trim() === "";
  return (
    <Sheet
      title={texts.rejectWhy}
      close={close}
      action={
        <button type="button" class="button solid" disabled={isEmpty} onClick={meant(() => answer("reject", words))}>
          {texts.rejectWithWords}
        </button>
      }
    >
      <div class="words">
        {texts.wordsQuick.map((quick) => (
          <button key={quick} type="button" class="chip" onClick={() => setWords(quick)}>
            {quick}
          </button>
        ))}
      </div>
      <WordsField words={words} setWords={setWords} machine={machine} />
      {canApprove ? (
        <button type="button" class="button text" disabled={isEmpty} onClick={meant(() => answer("approve", words))}>
          {texts.approveWithWords}
        </button>
      ) : null}
      {suggest === undefined ? null : (
        <button type="button" class="button text" onClick={meant(suggest)}>
          {texts.suggest}
        </button>
      )}
    </Sheet>
  );
}

/** An answer in one's own words. */
export function AnswerSheet({
  machine,
  close,
  send,
}: {
  machine: string;
  close: () => void;
  send: (words: string) => void;
}) {
  const [words, setWords] = useState("");
  return (
    <Sheet
      title={texts.yourAnswer}
      close={close}
      action={
        <button type="button" class="button primary" disabled={words.trim() === ""} onClick={meant(() => send(words))}>
          {texts.sendAnswer}
        </button>
      }
    >
      <WordsField words={words} setWords={setWords} machine={machine} />
    </Sheet>
  );
}

/** Where words for the agent are written, and who can read them. */
function WordsField({
  words,
  setWords,
  machine,
}: {
  words: string;
  setWords: (words: string) => void;
  machine: string;
}) {
  return (
    <>
      <textarea
        aria-label={texts.wordsLabel}
        rows={3}
        maxLength={4_000}
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
      />
      <p class="note">{texts.wordsHelp(visible(machine))}</p>
    </>
  );
}

export function ScopeSheet({
  request,
  payload,
  chosen,
  choose,
  close,
}: {
  request: OpenedRequest;
  payload: Payload;
  chosen: Offer;
  choose: (offer: Offer) => void;
  close: () => void;
}) {
  const [any, setAny] = useState<ReadonlySet<number>>(new Set());
  const [hasRest, setRest] = useState(false);
  const [scope, setScope] = useState<Offer["scope"]>(chosen.scope);
  const hour = request.isEdited ? undefined : hourOffer(payload, any, hasRest);
  const offers = [ONCE, sessionOffer(request, payload), hour].filter((offer) => offer !== undefined);
  const offer = offers.find((one) => one.scope === scope);
  const toggle = (at: number): void =>
    setAny((before) => new Set(before.has(at) ? [...before].filter((other) => other !== at) : [...before, at]));
  return (
    <Sheet
      title={texts.scopeTitle}
      close={close}
      action={
        <button
          type="button"
          class="button primary"
          disabled={offer === undefined}
          onClick={meant(() => {
            if (offer !== undefined) choose(offer);
          })}
        >
          {texts.choose[scope]}
        </button>
      }
    >
      <fieldset class="choices">
        <legend class="hidden">{texts.scopeTitle}</legend>
        {offers.map((one) => (
          <label key={one.scope} class="choice">
            <input type="radio" name="scope" checked={one.scope === scope} onChange={() => setScope(one.scope)} />
            <span>
              <b>{one.name}</b>
              <small>
                <Marked text={one.sentence} />
              </small>
            </span>
          </label>
        ))}
      </fieldset>
      {scope === "timebox" ? (
        <PatternChoice
          argv={patternArguments(payload) ?? []}
          any={any}
          toggle={toggle}
          hasRest={hasRest}
          setRest={setRest}
        />
      ) : null}
      <Limit payload={payload} isEdited={request.isEdited} />
    </Sheet>
  );
}

/** Why there is no more to choose from. */
function Limit({ payload, isEdited }: { payload: Payload; isEdited: boolean }) {
  if (isEdited) return <p class="note">{texts.scopeOnlyOnceChanged}</p>;
  if (isDangerousPayload(payload)) return <p class="note">{texts.scopeOnlyOnce}</p>;
  if (isSerious(payload)) return <p class="note">{texts.scopeOnlyOnceUnknown}</p>;
  return payload.state === "opaque" ? <p class="note">{texts.scopeNoPattern}</p> : null;
}

function PatternChoice({
  argv,
  any,
  toggle,
  hasRest,
  setRest,
}: {
  argv: readonly string[];
  any: ReadonlySet<number>;
  toggle: (at: number) => void;
  hasRest: boolean;
  setRest: (is: boolean) => void;
}) {
  return (
    <div class="pattern">
      <p class="note">{texts.scopePattern}</p>
      <p class="words">
        {argv.map((argument, at) => (
          <button
            key={at}
            type="button"
            class="chip argument"
            disabled={!canBeAny(argument, at)}
            aria-pressed={any.has(at)}
            onClick={() => toggle(at)}
          >
            {any.has(at) ? "*" : <Marked text={shownCode(quoted(argument))} />}
          </button>
        ))}
      </p>
      <label class="check">
        <input type="checkbox" checked={hasRest} onChange={(event) => setRest(event.currentTarget.checked)} />{" "}
        {texts.scopeRest}
      </label>
    </div>
  );
}
