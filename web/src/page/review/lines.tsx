// The lines of a request on the screen. A long diff is put into the page piece by piece, when it comes near the screen.

import { Component, type ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { texts } from "../../texts.ts";
import { meant, screenChanged } from "../guard.ts";
import { Icon } from "../icons.tsx";
import { Marked, useDesk } from "../parts.tsx";
import { isFile, type ReviewDocument } from "./document.ts";
import { DrawnLine, type Look } from "./drawn.tsx";
import type { Line, Section } from "./line.ts";
import type { Reading } from "./reading.ts";

/** Lines that are put into the page together. */
const CHUNK_LINES = 30;
/** A piece is put into the page when it is this near. */
const NEAR_PIXELS = 800;
/** The height of a line that was not drawn yet. */
const LINE_PIXELS = 20;

/** Knows which pieces are near the screen. */
class Nearness {
  readonly near = new Set<Element>();
  readonly #came = new Map<Element, () => void>();
  readonly #observer: IntersectionObserver;

  constructor(changed: () => void) {
    const seen = (entries: IntersectionObserverEntry[]): void => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) {
          this.near.add(target);
          this.#came.get(target)?.();
        } else {
          this.near.delete(target);
        }
      }
      changed();
    };
    this.#observer = new IntersectionObserver(seen, { rootMargin: `${NEAR_PIXELS}px 0px` });
  }

  watch(element: Element, came: () => void): void {
    this.#came.set(element, came);
    this.#observer.observe(element);
  }

  forget(element: Element): void {
    this.#came.delete(element);
    this.near.delete(element);
    this.#observer.unobserve(element);
  }

  end(): void {
    this.#observer.disconnect();
  }
}

interface ChunkProps {
  readonly lines: readonly Line[];
  readonly section: number;
  readonly from: number;
  readonly nearness: Nearness;
  readonly look: Look;
}

class Chunk extends Component<ChunkProps, { isNear: boolean }> {
  override state = { isNear: false };
  #element: Element | null = null;

  override componentDidMount(): void {
    if (this.#element !== null)
      this.props.nearness.watch(this.#element, () => this.state.isNear || this.setState({ isNear: true }));
  }

  override componentWillUnmount(): void {
    if (this.#element !== null) this.props.nearness.forget(this.#element);
  }

  override shouldComponentUpdate({ look }: ChunkProps, next: { isNear: boolean }): boolean {
    return next.isNear !== this.state.isNear || look !== this.props.look;
  }

  override render({ lines, section, from, look }: ChunkProps) {
    const { isNear } = this.state;
    const keep = (element: Element | null): void => {
      if (element !== null) this.#element = element;
    };
    return (
      <div
        ref={keep}
        class="chunk"
        data-section={section}
        data-from={from}
        style={isNear ? {} : { height: `${lines.length * LINE_PIXELS}px` }}
      >
        {isNear ? lines.map((line, at) => <DrawnLine key={at} line={line} look={look} />) : null}
      </div>
    );
  }
}

function chunks(lines: readonly Line[]): { from: number; lines: readonly Line[] }[] {
  const starts = Array.from({ length: Math.ceil(lines.length / CHUNK_LINES) }, (_, at) => at * CHUNK_LINES);
  return starts.map((from) => ({ from, lines: lines.slice(from, from + CHUNK_LINES) }));
}

/** Where a line is on the page: itself, or what it will be drawn in; of the first one, the head of its file. */
export function lineElement({ section, line }: { section: number; line: number }): Element | null {
  const head = document.querySelector(`[data-file="${section}"] .file-head`);
  if (line === 0 && head !== null) return head;
  const from = line - (line % CHUNK_LINES);
  const chunk = document.querySelector(`[data-section="${section}"][data-from="${from}"]`);
  return chunk?.children[line - from] ?? chunk;
}

/** The part of the screen that nothing covers. */
function freeArea(): { top: number; bottom: number } {
  const top = document.querySelector(".review .effect-bar")?.getBoundingClientRect().bottom ?? 0;
  const bottom = document.querySelector(".answer-bar")?.getBoundingClientRect().top ?? window.innerHeight;
  return { top: Math.max(0, top), bottom: Math.min(window.innerHeight, bottom) };
}

/** Notes the lines of a piece that are on the screen as a whole. Whether one is new. */
function noteLines(chunk: Element, area: { top: number; bottom: number }, reading: Reading): boolean {
  const { top, bottom } = chunk.getBoundingClientRect();
  if (!(chunk instanceof HTMLElement) || bottom < area.top || top > area.bottom) return false;
  const [section, from] = [Number(chunk.dataset["section"]), Number(chunk.dataset["from"])];
  let isNew = false;
  Array.from(chunk.children).forEach((line, at) => {
    const place = line.getBoundingClientRect();
    // One that is higher than the screen counts when its end is reached.
    const isTall = place.height > area.bottom - area.top;
    const isShown = place.bottom <= area.bottom + 1 && (isTall ? place.bottom >= area.top : place.top >= area.top - 1);
    if (isShown && reading.see(section, from + at)) isNew = true;
  });
  return isNew;
}

/** All of a request. `shown` is called when more of it was on the screen. */
export function Lines({
  document: content,
  heading,
  reading,
  folded,
  fold,
  shown,
  before,
  above,
  change,
  within,
  children,
}: {
  document: ReviewDocument;
  /** What the content is called; empty if it needs no name. */
  heading: string;
  reading: Reading;
  folded: readonly boolean[];
  fold: (section: number) => void;
  shown: () => void;
  /** In front of the content. */
  before?: ComponentChildren;
  /** First of all, above the content. */
  above?: ComponentChildren;
  /** Beside the name of the content. */
  change?: ComponentChildren;
  /** Under the content, as a part of it. */
  within?: ComponentChildren;
  /** Between the content and the proof. */
  children?: ComponentChildren;
}) {
  const check = useRef<() => void>(() => undefined);
  const isDesk = useDesk();
  const nearness = useMemo(() => new Nearness(() => check.current()), []);
  useEffect(() => {
    let frame = 0;
    const note = (): void => {
      frame = 0;
      if (document.visibilityState !== "visible" || document.querySelector(".sheet-back") !== null) return;
      const area = freeArea();
      const drawn = [...nearness.near, ...document.querySelectorAll(".choice-list")];
      const isNew = drawn.filter((chunk) => noteLines(chunk, area, reading)).length > 0;
      if (isNew) shown();
    };
    check.current = () => {
      if (frame === 0) frame = requestAnimationFrame(note);
    };
    const again = (): void => check.current();
    document.addEventListener("scroll", again, { capture: true, passive: true });
    window.addEventListener("resize", again);
    check.current();
    return () => {
      cancelAnimationFrame(frame);
      nearness.end();
      document.removeEventListener("scroll", again, { capture: true });
      window.removeEventListener("resize", again);
    };
  }, []);
  const [look, setLook] = useState<Look>("read");
  // What was folded or unfolded is drawn now.
  useEffect(() => check.current(), [folded, look, isDesk]);
  // One line of prose looks the same either way.
  const isMarkdown = content.sections.some(
    ({ lines, isOfChoices }) =>
      isOfChoices !== true && lines.length > 1 && lines.some(({ kind }) => kind === "prose" || kind === "heading"),
  );
  const parts = content.sections.map((section, at) => ({
    isProof: section.need === "never",
    isDrawn: section.isOfChoices !== true,
    part: (
      <Part
        key={at}
        section={section}
        at={at}
        isFolded={folded[at] === true}
        isOpened={reading.isOpened(at)}
        fold={() => fold(at)}
        nearness={nearness}
        look={look}
      />
    ),
  }));
  const exact = (
    <div class="exact lines">
      {heading === "" && !isMarkdown ? null : (
        <div class="between">
          <h2 class="heading">{heading}</h2>
          {change}
          {isMarkdown ? <LookSwitch look={look} setLook={setLook} /> : null}
        </div>
      )}
      <Jumps sections={content.sections} reading={reading} folded={folded} fold={fold} />
      {parts.filter(({ isProof, isDrawn }) => isDrawn && !isProof).map(({ part }) => part)}
      {within}
    </div>
  );
  const proof = parts.filter(({ isProof }) => isProof).map(({ part }) => part);
  // With nothing in front, it is a part of a list, which has one column everywhere.
  if (!isDesk || before === undefined)
    return (
      <>
        {above}
        {before}
        {exact}
        {children}
        {proof}
      </>
    );
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls by itself must be reached by the keyboard */}
      <section class="column" aria-label={heading === "" ? texts.contentTitle : heading} tabIndex={0}>
        {above}
        {exact}
      </section>
      <aside class="beside" aria-label={texts.whoAndProof}>
        {before}
        {children}
        {proof}
      </aside>
    </>
  );
}

/** From so many files on there is a list of them to jump from. */
const MANY_FILES = 3;

/** The files, to jump to: one that is folded is opened. A dot is on what was not opened yet. */
function Jumps({
  sections,
  reading,
  folded,
  fold,
}: {
  sections: readonly Section[];
  reading: Reading;
  folded: readonly boolean[];
  fold: (section: number) => void;
}) {
  const files = sections.flatMap((section, at) => (isFile(section) ? [{ title: section.title ?? "", at }] : []));
  if (files.length < MANY_FILES) return null;
  const jump = (at: number) =>
    meant(() => {
      if (folded[at] === true) fold(at);
      // It is drawn first.
      requestAnimationFrame(() => document.querySelector(`[data-file="${at}"]`)?.scrollIntoView({ block: "start" }));
    });
  return (
    <nav class="jumps" aria-label={texts.files}>
      {files.map(({ title, at }) => (
        <button key={at} type="button" class="chip" onClick={jump(at)}>
          <Marked text={title.slice(title.lastIndexOf("/") + 1)} />
          {reading.isOpened(at) ? null : <span class="unseen" role="img" aria-label={texts.notOpened} />}
        </button>
      ))}
    </nav>
  );
}

function LookSwitch({ look, setLook }: { look: Look; setLook: (look: Look) => void }) {
  const change = (next: Look) =>
    meant(() => {
      screenChanged("pane");
      setLook(next);
    });
  return (
    <span class="switch">
      <button type="button" aria-pressed={look === "read"} onClick={change("read")}>
        {texts.lookRead}
      </button>
      <button type="button" aria-pressed={look === "source"} onClick={change("source")}>
        {texts.lookSource}
      </button>
    </span>
  );
}

function Part({
  section,
  at,
  isFolded,
  isOpened,
  fold,
  nearness,
  look,
}: {
  section: Section;
  at: number;
  isFolded: boolean;
  isOpened: boolean;
  fold: () => void;
  nearness: Nearness;
  look: Look;
}) {
  const { title, note, lines, need } = section;
  const pieces = useMemo(() => chunks(lines), [lines]);
  const body = pieces.map(({ from, lines: some }) => (
    <Chunk key={from} lines={some} section={at} from={from} nearness={nearness} look={look} />
  ));
  if (title === undefined) return <div class="card part">{body}</div>;
  if (need === "always") {
    return (
      <section class="card part file" data-file={at}>
        <h3 class="file-head">
          <span class="file-name">{title}</span>
          <span class="file-note">
            {note} · {texts.lines(lines.length)}
          </span>
        </h3>
        <div class="file-body">{body}</div>
      </section>
    );
  }
  const isProof = need === "never";
  return (
    <div class={isProof ? "card part file proof" : "card part file"} data-file={at}>
      <button type="button" class="file-head" aria-expanded={!isFolded} onClick={meant(fold)}>
        {isProof ? <Icon name="shield" /> : <Icon name="right" />}
        <span class="file-name">
          {isProof ? (
            <>
              <strong>{title}</strong>: {note}
            </>
          ) : (
            <Marked text={title} />
          )}
        </span>
        {isProof || isOpened ? null : <span class="unseen" role="img" aria-label={texts.notOpened} />}
        {isProof ? <Icon name="right" /> : <Note note={note} />}
      </button>
      {isFolded ? null : <div class="file-body">{body}</div>}
    </div>
  );
}

/** What stands behind the name of a file, with added and removed lines in their colours. */
function Note({ note }: { note: string }) {
  const [, before = note, added, removed] = /^(.*?)(\+\d+) (−\d+)$/.exec(note) ?? [];
  return (
    <span class="file-note num">
      <Marked text={before} />
      {added === undefined ? null : (
        <>
          <span class="plus">{added}</span> <span class="minus">{removed}</span>
        </>
      )}
    </span>
  );
}
