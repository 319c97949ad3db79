// How one line is drawn. Whatever is drawn, it is text: no part of a request becomes markup.

import { texts } from "../../texts.ts";
import { Icon } from "../icons.tsx";
import { Marked } from "../parts.tsx";
import { actPieces } from "./acts.ts";
import type { Line } from "./line.ts";
import { changedPieces } from "./words.ts";

/** Whether Markdown is drawn, or shown as it was written. */
export type Look = "read" | "source";

export function DrawnLine({ line, look }: { line: Line; look: Look }) {
  const { kind, text, numbers, label } = line;
  if (label !== undefined)
    return (
      <div class="line fact">
        <span class="label">
          <Marked text={label} />
        </span>
        <Marked text={text} />
      </div>
    );
  if (kind === "where")
    return (
      <div class="line where">
        <Icon name="folder" size="s" />
        <span>
          <Marked text={text} />
        </span>
      </div>
    );
  if (numbers !== undefined) return <Numbered line={line} numbers={numbers} />;
  if (kind === "hunk") return <Hunk text={text} />;
  if (kind === "prose" || kind === "heading") return <Prose line={line} look={look} />;
  return (
    <div class={`line ${kind}`}>
      <Marked text={text === "" ? " " : text} />
    </div>
  );
}

/** The head of a hunk. One that begins a file says nothing that the numbers beside its lines don't. */
function Hunk({ text }: { text: string }) {
  const isStart = /^@@ -[01](,\d+)? \+1(,\d+)? @@ *$/.test(text);
  return (
    <div class={isStart ? "line known" : "line hunk"}>
      <Marked text={hunkText(text)} />
    </div>
  );
}

/** What a hunk is in; else where it is. The numbers of its lines stand beside them. */
function hunkText(text: string): string {
  const [, after = "", context = ""] = /^@@ -\S+ \+(\d+)\S* @@ ?(.*)$/.exec(text) ?? [];
  return context.trim() === "" ? (after === "" ? text : texts.fromLine(after)) : context;
}

function Numbered({ line, numbers }: { line: Line; numbers: NonNullable<Line["numbers"]> }) {
  const { kind, text, pair } = line;
  const isOfDiff = kind !== "code";
  const content = isOfDiff ? text.slice(1) : text;
  const sign = kind === "added" ? "+" : kind === "removed" ? "−" : "";
  return (
    <div class={isOfDiff ? `line numbered of-diff ${kind}` : "line numbered"}>
      {isOfDiff ? <span class="no before">{numbers[0]}</span> : null}
      <span class="no after">{numbers[1]}</span>
      {isOfDiff ? <span class="sign">{sign}</span> : null}
      <span class="content">
        {line.hasActs === true ? (
          <Acts text={content} />
        ) : pair === undefined ? (
          <Marked text={content === "" ? " " : content} />
        ) : (
          <Changed line={line} pair={pair} />
        )}
      </span>
    </div>
  );
}

/** A line of a script, with the words that delete, send, start or stop. */
function Acts({ text }: { text: string }) {
  if (text === "") return <> </>;
  return (
    <>
      {actPieces(text).map((piece, at) =>
        piece.isAct ? (
          <b key={at} class="act">
            {piece.text}
          </b>
        ) : (
          <Marked key={at} text={piece.text} />
        ),
      )}
    </>
  );
}

function Changed({ line, pair }: { line: Line; pair: string }) {
  const isAdded = line.kind === "added";
  return (
    <>
      {changedPieces(line.text.slice(1), pair).map(({ text, isChanged }, at) => {
        if (!isChanged) return <Marked key={at} text={text} />;
        return isAdded ? (
          <ins key={at}>
            <Marked text={text} />
          </ins>
        ) : (
          <del key={at}>
            <Marked text={text} />
          </del>
        );
      })}
    </>
  );
}

/** A line of Markdown: headings, items of lists, `code` and **weight** are drawn. Links stay text. */
function Prose({ line, look }: { line: Line; look: Look }) {
  const { kind, text } = line;
  if (look === "source") return <div class="line code">{<Marked text={text === "" ? " " : text} />}</div>;
  if (kind === "heading")
    return (
      <div class="line heading">
        <Inline text={text.replace(/^#{1,6} /, "")} />
      </div>
    );
  const [, indent = "", mark, rest = ""] = /^(\s*)(?:(\d{1,3})[.)]|[-*+–])\s+(.*)$/.exec(text) ?? [];
  const isItem = rest !== "";
  if (!isItem) return <div class="line prose">{text === "" ? " " : <Inline text={text} />}</div>;
  return (
    <div class={indent.length > 1 ? "line prose item inner" : "line prose item"}>
      <span class={mark === undefined ? "dot" : "step"}>{mark ?? "•"}</span>
      <span>
        <Inline text={rest} />
      </span>
    </div>
  );
}

function Inline({ text }: { text: string }) {
  return (
    <>
      {text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part, at) => {
        if (/^`[^`]+`$/.test(part))
          return (
            <code key={at}>
              <Marked text={part.slice(1, -1)} />
            </code>
          );
        if (/^\*\*[^*]+\*\*$/.test(part))
          return (
            <strong key={at}>
              <Marked text={part.slice(2, -2)} />
            </strong>
          );
        return <Marked key={at} text={part} />;
      })}
    </>
  );
}
