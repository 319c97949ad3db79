// Small parts that several screens use.

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Timestamp } from "../protocol/index.ts";
import { texts } from "../texts.ts";
import type { App } from "./app.ts";
import { meant } from "./guard.ts";
import { Icon, type IconName } from "./icons.tsx";
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

const DESK = "(min-width: 1000px)";

/** Whether there is room for columns. */
export function useDesk(): boolean {
  const [isDesk, setDesk] = useState(() => window.matchMedia(DESK).matches);
  useEffect(() => {
    const query = window.matchMedia(DESK);
    const look = (): void => setDesk(query.matches);
    look();
    query.addEventListener("change", look);
    return () => query.removeEventListener("change", look);
  }, []);
  return isDesk;
}

/** A duration in words: `40 s`, `9 min`, `3 h`, `2 d`. */
export function duration(millis: number): string {
  const seconds = Math.max(0, Math.floor(millis / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** Less than this is soon. */
const SOON_MILLIS = 5 * 60_000;

/** The time that is left. */
export function TimeLeft({ until, isShort = false }: { until: Timestamp; isShort?: boolean }) {
  const left = Math.max(0, until.millis - useNow());
  return (
    <span class={left < SOON_MILLIS ? "left num soon" : "left num"}>
      <Icon name="clock" size={isShort ? "xs" : "s"} />
      {duration(left)}
      <span class={isShort ? "hidden" : ""}> {texts.left}</span>
    </span>
  );
}

/** How long ago something was; from yesterday on, the clock. */
export function Ago({ time }: { time: string }) {
  const now = useNow();
  const at = Date.parse(time);
  if (Number.isNaN(at)) return null;
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  const text = !isToday ? clock(time) : now - at < 10_000 ? texts.now : texts.ago(duration(now - at));
  return (
    <time class="left num" dateTime={time} title={clock(time)}>
      {text}
    </time>
  );
}

/** A time of day, with the date if it is another one. */
export function clock(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "";
  const day = date.toDateString() === new Date().toDateString() ? "" : `${date.toISOString().slice(0, 10)} `;
  return `${day}${date.toTimeString().slice(0, 8)}`;
}

/** A lock: the machine is paired and verified. */
export function Lock() {
  return <Icon name="lock" size="s" label={texts.verified} />;
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

/** One thing of the list: its name, and inside what can be done with it. */
export function Fold({
  icon,
  title,
  note,
  children,
  isOpen = false,
}: {
  icon: IconName;
  title: ComponentChildren;
  note: ComponentChildren;
  children: ComponentChildren;
  isOpen?: boolean;
}) {
  return (
    <details open={isOpen}>
      <summary class="tall">
        <span class="kind" aria-hidden="true">
          <Icon name={icon} />
        </span>
        <span class="grow">
          <span class="strong">{title}</span>
          <br />
          <span class="note">{note}</span>
        </span>
        <Icon name="right" />
      </summary>
      <div class="pad stack flush">{children}</div>
    </details>
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
export function CopyText({ text, label, rows = 4 }: { text: string; label: string; rows?: number }) {
  const [isCopied, setCopied] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const copy = (): void => {
    // Where a page may not copy, the person can: it is selected then.
    const select = (): void => area.current?.select();
    navigator.clipboard.writeText(text).then(() => setCopied(true), select);
  };
  return (
    <div class="copy">
      <textarea ref={area} class="code" readOnly aria-label={label} value={text} rows={rows} />
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
export function Screen({
  title,
  children,
  note,
  kind = "",
}: {
  title: string;
  children: ComponentChildren;
  /** Under the heading. */
  note?: string | undefined;
  kind?: string;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), [kind === "inbox" ? "" : title]);
  return (
    <section class={`screen ${kind}`}>
      <div>
        <h1 ref={heading} tabIndex={-1} class={kind === "alone" ? "big-title" : "title"}>
          {title}
        </h1>
        {note === undefined ? null : <p class="soft">{note}</p>}
      </div>
      {children}
    </section>
  );
}
