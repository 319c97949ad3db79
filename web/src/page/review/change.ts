// A change before an approval: the fields that it is written in, why it can't be sent yet, and how it differs from what was there.

import {
  type Edit,
  type Editable,
  editSize,
  JsonArray,
  type JsonValue,
  lastName,
  MAX_EDIT,
  type Payload,
  pointer,
  quoted,
  resolve,
  visibleCode,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { paired } from "./diff.ts";
import { type Line, shownCode } from "./line.ts";

/** A field in which a member of a call is changed. */
export interface Field {
  readonly place: string;
  readonly label: string;
  /** What is there, with the line breaks of a field. */
  readonly before: string;
  /** A field has line feeds only; this is what they stand for. */
  readonly lineBreak: "\n" | "\r\n";
  readonly isCommand: boolean;
}

/** What is written in the fields, by their places; what is absent is as it was. */
export type Draft = Readonly<Record<string, string>>;

const CONTENT = ["content", "contents", "file_text"];
const NEW_TEXT = ["new_string", "newString", "new_str"];
const PATCH = ["patch", "patchText"];
const COMMAND = ["command", "cmd", "argv"];

function labelOf({ place }: Editable, payload: Payload): string {
  const name = lastName(place) ?? "";
  if (PATCH.includes(name) || (payload.kind === "patch" && COMMAND.includes(name))) return texts.fieldPatch;
  if (COMMAND.includes(name)) return texts.fieldCommand;
  if (CONTENT.includes(name)) return texts.fieldContent;
  return NEW_TEXT.includes(name) ? texts.fieldText : visibleCode(name);
}

/** The line break of a text; `undefined` if it has several, which a field would make one. */
function lineBreakOf(text: string): Field["lineBreak"] | undefined {
  if (!text.includes("\r")) return "\n";
  return /[\r\n]/.test(text.replaceAll("\r\n", "")) ? undefined : "\r\n";
}

/** The fields for what is offered. What a field can't keep exactly as it is has none. */
export function fieldsOf(edits: readonly Editable[], payload: Payload): Field[] {
  // What is not read as a call is shown as JSON, and nobody sees there what a change would do.
  if (payload.call === undefined) return [];
  const fields = edits.flatMap((one): Field[] => {
    const lineBreak = lineBreakOf(one.text);
    const label = labelOf(one, payload);
    if (lineBreak === undefined) return [];
    const before = one.text.replaceAll("\r\n", "\n");
    return [{ place: one.place.source, label, before, lineBreak, isCommand: label === texts.fieldCommand }];
  });
  const isTwice = ({ label }: Field): boolean => fields.filter((other) => other.label === label).length > 1;
  const numberOf = (at: number, { label }: Field): number =>
    fields.slice(0, at + 1).filter((other) => other.label === label).length;
  return fields.map((field, at) =>
    isTwice(field) ? { ...field, label: texts.fieldOf(field.label, numberOf(at, field)) } : field,
  );
}

/** What a draft changes. */
export function editOf(fields: readonly Field[], draft: Draft): Edit {
  const changed = fields.flatMap(({ place, before, lineBreak }) => {
    const text = draft[place] ?? before;
    return text === before ? [] : [[place, text.replaceAll("\n", lineBreak)] as const];
  });
  return Object.fromEntries(changed);
}

/** Why a draft can't be sent; empty if it can. */
export function draftProblem(fields: readonly Field[], draft: Draft): string {
  const edit = editOf(fields, draft);
  if (Object.keys(edit).length === 0) return texts.changeNothing;
  if (fields.some(({ place, isCommand }) => isCommand && edit[place]?.trim() === "")) return texts.changeEmpty;
  const size = editSize(edit);
  return size > MAX_EDIT ? texts.changeTooLong(size, MAX_EDIT) : "";
}

/** The lines of a text in which something can't be seen or looks like something else, with their numbers. */
export function markedLines(text: string): { readonly number: number; readonly text: string }[] {
  return text.split("\n").flatMap((line, at) => {
    // A tab moves what follows it, as anybody can see.
    const plain = line.replaceAll("\t", " ");
    return visibleCode(plain) === plain ? [] : [{ number: at + 1, text: shownCode(line) }];
  });
}

/** What stands at a place of a call: a text, or the words of a command on one line. */
function textAt(message: JsonValue, place: string): string | undefined {
  const value = resolve(message, pointer(place, ""));
  if (typeof value === "string" || value === undefined) return value;
  const words = value instanceof JsonArray ? value.items : [];
  const isOfTexts = words.every((word) => typeof word === "string");
  return isOfTexts && words.length > 0 ? words.map((word) => quoted(`${word}`)).join(" ") : undefined;
}

/** What a machine has made of a change. */
export interface Made {
  readonly place: string;
  readonly label: string;
  readonly lines: readonly Line[];
  /** Whether both texts have one line, which needs no number. */
  readonly isOneLine: boolean;
  /** Whether it is another text than was sent. The words of a command may be quoted in another way. */
  readonly isOther: boolean;
}

/** What differs between what was there before an edit and what is there now, member by member. */
export function madeOf(before: readonly Editable[], edit: Edit, payload: Payload): Made[] {
  return before.flatMap((one) => {
    const { source } = one.place;
    const now = payload.call === undefined ? undefined : textAt(payload.call.message, source);
    const sent = Object.hasOwn(edit, source) ? edit[source] : undefined;
    if (sent === undefined || now === undefined) return [];
    const lines = changedLines(one.text, now);
    const isOneLine = !`${one.text}${now}`.includes("\n");
    return [{ place: source, label: labelOf(one, payload), lines, isOneLine, isOther: !one.isWords && now !== sent }];
  });
}

/** Where there are more pairs of lines, everything between the first and the last change is one change. */
const MAX_COMPARED = 250_000;

/** What differs between two texts: the lines of a diff, with one line around each change. */
export function changedLines(before: string, after: string): Line[] {
  const steps = stepsBetween(before.split("\n"), after.split("\n"));
  const isNear = (at: number): boolean => [at - 1, at, at + 1].some((near) => /^[-+]/.test(steps[near] ?? ""));
  let [first, second] = [1, 1];
  const lines = steps.flatMap((step, at): Line[] => {
    const kind = step.startsWith("+") ? "added" : step.startsWith("-") ? "removed" : "text";
    const numbers = [kind === "added" ? undefined : first, kind === "removed" ? undefined : second] as const;
    const gap: Line = { kind: "hunk", text: `@@ -${first} +${second} @@` };
    if (kind !== "added") first += 1;
    if (kind !== "removed") second += 1;
    if (!isNear(at)) return [];
    return [...(at === 0 || isNear(at - 1) ? [] : [gap]), { kind, text: shownCode(step), numbers }];
  });
  return paired(lines);
}

/** Each line of two texts with a sign: `-` is only in the first, `+` only in the second. */
function stepsBetween(before: readonly string[], after: readonly string[]): string[] {
  const least = Math.min(before.length, after.length);
  let start = 0;
  while (start < least && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < least - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const kept = (line: string): string => ` ${line}`;
  const middle = between(before.slice(start, before.length - end), after.slice(start, after.length - end));
  return [...before.slice(0, start).map(kept), ...middle, ...before.slice(before.length - end).map(kept)];
}

/** The same by the longest common sequence; where that is too much work, everything has changed. */
function between(before: readonly string[], after: readonly string[]): string[] {
  const removed = (lines: readonly string[]): string[] => lines.map((line) => `-${line}`);
  const added = (lines: readonly string[]): string[] => lines.map((line) => `+${line}`);
  if (before.length * after.length > MAX_COMPARED) return [...removed(before), ...added(after)];
  const table = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  const length = (at: number, other: number): number => table[at]?.[other] ?? 0;
  for (let at = before.length - 1; at >= 0; at -= 1) {
    const row = table[at] ?? new Uint16Array();
    for (let other = after.length - 1; other >= 0; other -= 1)
      row[other] =
        before[at] === after[other]
          ? length(at + 1, other + 1) + 1
          : Math.max(length(at + 1, other), length(at, other + 1));
  }
  const steps: string[] = [];
  let [at, other] = [0, 0];
  while (at < before.length && other < after.length) {
    if (before[at] === after[other]) {
      steps.push(` ${before[at]}`);
      [at, other] = [at + 1, other + 1];
    } else if (length(at + 1, other) >= length(at, other + 1)) {
      steps.push(`-${before[at]}`);
      at += 1;
    } else {
      steps.push(`+${after[other]}`);
      other += 1;
    }
  }
  return [...steps, ...removed(before.slice(at)), ...added(after.slice(other))];
}
