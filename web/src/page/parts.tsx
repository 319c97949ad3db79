// Small parts that several screens use.

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Timestamp } from "../protocol/index.ts";
import { texts } from "../texts.ts";
import type { App } from "./app.ts";
import { meant } from "./guard.ts";
import { messageOf } from "./messages.ts";
import type { State } from "./state.ts";

/** The page that the screens belong to. */
export const AppContext = createContext<App | undefined>(undefined);

/** The page. */
export function useApp(): App {
  const app = useContext(AppContext);
  if (app === undefined) throw new Error("there is no page");
  return app;
}

/** What the page shows now. */
export function usePage(): State {
  const app = useApp();
  const [, again] = useState(0);
  // Before anything else can run, or a change between would not be seen: the page starts right after it is drawn.
  useLayoutEffect(() => app.subscribe(() => again((count) => count + 1)), [app]);
  return app.state;
}

/** A text that was made visible before, with the characters that were written out marked. */
export function Marked({ text }: { text: string }) {
  if (!text.includes("⟨")) return <>{text}</>;
  return <>{text.split(/(⟨[^⟩]*⟩)/).map((part, at) => (part.startsWith("⟨") ? <mark key={at}>{part}</mark> : part))}</>;
}

/** The time now, each second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** A duration in words: `9:41`, `3 h`, `2 d`. */
export function duration(millis: number): string {
  const seconds = Math.max(0, Math.floor(millis / 1_000));
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

const RADIUS = 8;
const AROUND = 2 * Math.PI * RADIUS;

/** The time that is left, as a ring that shrinks and as words. */
export function TimeLeft({ from, until }: { from: Timestamp; until: Timestamp }) {
  const left = Math.max(0, until.millis - useNow());
  const part = Math.min(1, left / Math.max(1, until.millis - from.millis));
  const isShort = left < 60_000;
  return (
    <span class={isShort ? "left short" : "left"}>
      <svg viewBox="0 0 20 20" aria-hidden="true">
        <circle class="ring-all" cx="10" cy="10" r={RADIUS} />
        <circle
          class="ring-left"
          cx="10"
          cy="10"
          r={RADIUS}
          stroke-dasharray={`${part * AROUND} ${AROUND}`}
          transform="rotate(-90 10 10)"
        />
      </svg>
      {texts.timeLeft(duration(left))}
    </span>
  );
}

/** A time of day, with the date if it is another one. */
export function clock(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "";
  const day = date.toDateString() === new Date().toDateString() ? "" : `${date.toISOString().slice(0, 10)} `;
  return `${day}${date.toTimeString().slice(0, 8)}`;
}

/** A lock that is closed when the machine is paired and verified. */
export function Lock({ isClosed }: { isClosed: boolean }) {
  const label = isClosed ? texts.verified : texts.unverified;
  return (
    <svg class={isClosed ? "lock" : "lock open"} viewBox="0 0 16 16" role="img" aria-label={label}>
      <path d={isClosed ? "M5 7V5a3 3 0 0 1 6 0v2" : "M5 7V4a3 3 0 0 1 6-1"} />
      <rect x="3" y="7" width="10" height="7" rx="1.5" />
    </svg>
  );
}

/** A button that acts once at a time, and says what went wrong. */
export function Act({
  label,
  busy,
  kind = "",
  act,
  disabled = false,
}: {
  label: string;
  busy?: string;
  kind?: string;
  act: () => Promise<void>;
  disabled?: boolean;
}) {
  const [state, setState] = useState<{ isBusy: boolean; problem: string }>({ isBusy: false, problem: "" });
  const isThere = useRef(true);
  useEffect(
    () => () => {
      isThere.current = false;
    },
    [],
  );
  const press = meant(() => {
    if (state.isBusy) return;
    setState({ isBusy: true, problem: "" });
    act().then(
      () => isThere.current && setState({ isBusy: false, problem: "" }),
      (error: unknown) => isThere.current && setState({ isBusy: false, problem: messageOf(error) }),
    );
  });
  return (
    <>
      <button type="button" class={`button ${kind}`} disabled={disabled || state.isBusy} onClick={press}>
        {state.isBusy ? (busy ?? label) : label}
      </button>
      {state.problem === "" ? null : <Problem text={state.problem} />}
    </>
  );
}

/** Something that went wrong. */
export function Problem({ text }: { text: string }) {
  return (
    <p class="problem" role="alert">
      <Marked text={text} />
    </p>
  );
}

/** A text to be carried to another device. */
export function CopyText({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => setCopied(true));
  };
  return (
    <div class="copy">
      <textarea class="code" readOnly aria-label={label} value={text} rows={4} />
      <button type="button" class="button quiet" onClick={copy}>
        {isCopied ? texts.copied : texts.copy}
      </button>
    </div>
  );
}

/** Digits that people compare. */
export function Digits({ digits }: { digits: string }) {
  return (
    <p class="digits">
      {digits.split(" ").map((group, at) => (
        <span key={at}>{group}</span>
      ))}
    </p>
  );
}

// CONTRIBUTING: add a screen, step 3
/** A screen with a heading, which gets the focus so that a screen reader begins there. */
export function Screen({ title, children, kind = "" }: { title: string; children: ComponentChildren; kind?: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), [title]);
  return (
    <section class={`screen ${kind}`}>
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children}
    </section>
  );
}
