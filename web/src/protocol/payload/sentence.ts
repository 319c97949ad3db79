// What a payload does, in one sentence, and what was found in it: from its effects, and never from what an agent says.
//
// The words are those of `schemas/sentences.json`, which the tool reads too; `vectors/sentences.json` holds both to the same
// bytes.

import table from "../../../../schemas/sentences.json" with { type: "json" };
import { visibleCode } from "../visible.ts";
import { quoted } from "./command.ts";
import type { Effect } from "./effect.ts";
import type { Payload } from "./index.ts";
import { commonFolder, type Patch, patchLines } from "./patch.ts";

/** How much something that was found matters. `unclear`: nobody can tell what it does. */
export type Weight = "plain" | "unclear" | "danger";

/** Something that was found in a payload, in a sentence or two with nothing invisible. */
export interface Found {
  readonly text: string;
  readonly weight: Weight;
}

/** What is said of an effect beyond what it does; empty if nothing is. It is at the end of the text. */
export function noteOf({ text }: Found): string {
  return NOTES.find((note) => text.endsWith(`. ${note}`)) ?? "";
}

/** What is said about an effect. */
interface Row {
  readonly effect: string;
  readonly weight: Weight;
  /** Without a detail; with one, or several in a list; with one of two words or more, which stand for different things. */
  readonly none: string;
  readonly one: string;
  readonly two?: string;
  /** On what an effect before it is on. Behind that if it begins with a comma. */
  readonly same?: string;
  /** What else is said where it is found. */
  readonly note?: string;
  /** What ends the sentence, and the same about several things. */
  readonly tail?: string;
  readonly tails?: string;
  /** Effects that go without saying. */
  readonly implies?: readonly string[];
  /** Whether it is only said if there is nothing else. */
  readonly only?: boolean;
}

/** The effects of one kind. */
interface Group {
  readonly row: Row;
  readonly details: readonly string[];
}

/** A part of a sentence, before it is joined to others. */
interface Phrase extends Group {
  text: string;
}

const ROWS = table.effects as readonly Row[];
const NOTES = ROWS.flatMap(({ note, tail, tails }) => [note, tail, tails].flatMap((text) => text ?? []));
const { payloads: PAYLOADS, states: STATES, words: WORDS } = table;

/** A list names at most this many things. */
const MAX_LISTED = 3;

/** A longer name is shortened. All of it is in the content. */
const MAX_NAME = 80;
const KEPT_START = 60;
const KEPT_END = 15;

/** What says already that code of the project runs, or that it is not known what does. */
const SAYS_CODE = ["tests", "builds", "runsCode", "runsGiven", "runsProgram"];

/** What it does, in one plain sentence. It is made of the effects, and has nothing of what an agent says about itself. */
export function sentenceOf(payload: Payload): string {
  switch (payload.kind) {
    case "patch":
      return patchSentence(payload, payload.effects ?? []);
    case "plan":
      return PAYLOADS.plan;
    case "checkpoint":
      return payload.call === undefined ? PAYLOADS.checkpoint : PAYLOADS.question;
    case "raw":
      return PAYLOADS.raw;
    case "command":
      return effectsSentence(payload) ?? PAYLOADS[payload.state ?? "notExamined"];
    case "task":
      return (
        effectsSentence(payload) ??
        (payload.call ? fill(PAYLOADS.tool, { "": name(payload.call.tool) }) : PAYLOADS.task)
      );
  }
}

/** What was found in it, the most serious first. It never says that there is no danger. */
export function foundIn(payload: Payload): Found[] {
  const groups = grouped(payload.effects ?? []);
  const found = groups.flatMap(foundOf);
  const isUnclear = groups.some(({ row }) => row.weight === "unclear");
  const saysCode = groups.some(({ row }) => SAYS_CODE.includes(row.effect));
  if (payload.kind === "raw") found.push({ text: STATES.raw, weight: "unclear" });
  else if (payload.state === "notExamined" && !isUnclear)
    found.push({ text: ofState(payload, "notExamined"), weight: "unclear" });
  else if (payload.state === "opaque" && !saysCode) found.push({ text: ofState(payload, "opaque"), weight: "plain" });
  // The most serious first; the order of the table within.
  const rank: Record<Weight, number> = { danger: 0, unclear: 1, plain: 2 };
  return found.sort((one, other) => rank[one.weight] - rank[other.weight]);
}

/** What is said about how much is certain. */
function ofState({ kind, call }: Payload, state: "opaque" | "notExamined"): string {
  return kind === "task" && call !== undefined ? fill(STATES[`${state}Tool`], { "": name(call.tool) }) : STATES[state];
}

function effectsSentence(payload: Payload): string | undefined {
  const all = phrases(grouped(payload.effects ?? []));
  if (all.length === 0) return undefined;
  const dangers = all.filter(({ row }) => row.weight === "danger").length;
  const kept = all.slice(0, Math.max(dangers, MAX_LISTED));
  const texts = kept.map(({ text }) => text);
  if (payload.state === "notExamined" && !kept.some(({ row }) => row.weight === "unclear")) texts.push(WORDS.unclear);
  else if (kept.length < all.length) texts.push(WORDS.more);
  const tails = new Set(kept.flatMap((one) => tailOf(one) ?? []));
  return [capitalised(joined(texts)), ...tails].join(". ");
}

/** The effects by kind, in the order of the table. */
function grouped(effects: readonly Effect[]): Group[] {
  return ROWS.flatMap((row) => {
    const ofKind = effects.filter(({ effect }) => effect === row.effect);
    const details = [...new Set(ofKind.flatMap(({ detail }) => detail ?? []))];
    return ofKind.length === 0 ? [] : [{ row, details }];
  });
}

/** What ends a sentence about these details. */
function tailOf({ row, details }: Group): string | undefined {
  return details.length === 1 ? row.tail : (row.tails ?? row.tail);
}

/** What is said about these details. */
function phrase({ row, details }: Group): string {
  const [detail, ...others] = details;
  if (detail === undefined) return row.none;
  const space = detail.indexOf(" ");
  if (others.length === 0 && row.two !== undefined && space >= 0)
    return fill(row.two, { first: name(detail.slice(0, space)), rest: name(detail.slice(space + 1)) });
  return fill(row.one, { "": listed(details) });
}

/** The parts of a sentence, the most serious first. */
function phrases(groups: readonly Group[]): Phrase[] {
  const implied = groups.flatMap(({ row }) => row.implies ?? []);
  const found: Phrase[] = [];
  for (const group of groups) {
    const { row, details } = group;
    const earlier = details.length === 0 ? undefined : found.find((one) => isSame(one.details, details));
    if (implied.includes(row.effect) && (details.length === 0 || earlier !== undefined)) continue;
    if (row.same !== undefined && earlier !== undefined) {
      if (row.same.startsWith(",")) earlier.text += row.same;
      else found.push({ text: row.same, row, details });
    } else if (row.two !== undefined && details.length > 1)
      found.push(...details.map((detail) => ({ text: phrase({ row, details: [detail] }), row, details: [detail] })));
    else found.push({ text: phrase(group), row, details });
  }
  const says = found.filter(({ row }) => row.only !== true);
  return says.length > 0 ? says : found;
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((detail, at) => detail === other[at]);
}

function foundOf({ row, details }: Group): Found[] {
  const one = (some: readonly string[]): Found => {
    const text = capitalised(phrase({ row, details: some }));
    const note = tailOf({ row, details: some }) ?? row.note;
    return { text: note === undefined ? `${text}.` : `${text}. ${note}`, weight: row.weight };
  };
  return details.length === 0 ? [one([])] : details.map((detail) => one([detail]));
}

function patchSentence(patch: Patch, effects: readonly Effect[]): string {
  const { files } = patch;
  const [only, ...others] = files;
  const { added, removed } = patchLines(patch);
  let text: string;
  if (only !== undefined && others.length === 0) {
    const from = only.previousPath === undefined ? "" : name(only.previousPath);
    text = fill(PAYLOADS[only.status], { from, "": name(only.path) });
  } else {
    const deleted = files.filter(({ status }) => status === "deleted").length;
    const key = deleted === 0 ? "manyChanged" : deleted === files.length ? "manyDeleted" : "someDeleted";
    const folder = commonFolder(files);
    const place = folder === "" ? "" : fill(PAYLOADS.place, { "": name(folder) });
    text = fill(PAYLOADS[key], { count: `${files.length}`, deleted: `${deleted}`, place });
  }
  for (const { effect, same } of ROWS)
    if (same?.startsWith(",") && effects.some((found) => found.effect === effect)) text += same;
  return text + fill(PAYLOADS.lines, { added: `${added}`, removed: `${removed}` });
}

/** A name from others, so that it can't be taken for words of ours: quoted unless it is one plain word. */
function name(text: string): string {
  const isFolder = text.length > 1 && text.endsWith("/");
  const characters = [...(isFolder ? text.slice(0, -1) : text)];
  const part = (some: readonly string[]): string => visibleCode(quoted(some.join("")));
  const shown =
    characters.length > MAX_NAME
      ? `${part(characters.slice(0, KEPT_START))}…${part(characters.slice(-KEPT_END))}`
      : part(characters);
  return isFolder ? fill(WORDS.folder, { "": shown }) : shown;
}

/** Names as a list that does not grow long. */
function listed(details: readonly string[]): string {
  const names = details.map(name);
  if (names.length <= MAX_LISTED) return inARow(names, WORDS.and);
  const more = fill(WORDS.moreDetails, { count: `${names.length - (MAX_LISTED - 1)}` });
  return inARow([...names.slice(0, MAX_LISTED - 1), more], WORDS.and);
}

/** Phrases as one sentence. Where one has a list of its own, a comma keeps them apart. */
function joined(texts: readonly string[]): string {
  const hasList = texts.some((text) => text.includes(WORDS.and) || text.includes(","));
  return inARow(texts, hasList ? WORDS.commaAnd : WORDS.and);
}

function inARow(parts: readonly string[], last: string): string {
  const end = parts.at(-1) ?? "";
  return parts.length < 2 ? end : `${parts.slice(0, -1).join(WORDS.comma)}${last}${end}`;
}

/** A template with its places filled. What is put in is not looked into. */
function fill(template: string, places: Readonly<Record<string, string>>): string {
  return template.replace(/\{([a-z]*)\}/g, (place, key: string) => places[key] ?? place);
}

function capitalised(text: string): string {
  return text.replace(/^[a-z]/, (first) => first.toUpperCase());
}
