// What may be changed before it is approved: which members of a call an enforcer offers, and what an edit makes of them. No I/O.

import type { Artifact } from "./artifact.ts";
import { FormatError } from "./errors.ts";
import { EDITED, EDITS } from "./extension.ts";
import { JsonArray, JsonNumber, JsonObject, type JsonValue, parseObject } from "./json.ts";
import { list } from "./members.ts";
import { quoted } from "./payload/command.ts";
import { type Pointer, pointer, resolve } from "./payload/pointer.ts";
import type { Edit } from "./words.ts";

const MAX_PLACES = 8;

/** A member of a call that may be changed. */
export interface Editable {
  /** Where it is in the message of the call. */
  readonly place: Pointer;
  /** What is there: the text itself, or the words of a command on one line, quoted. */
  readonly text: string;
  /** Whether it is the words of a command, which the machine splits the new text into by itself. */
  readonly isWords: boolean;
}

/** What an artifact offers to change. An offer that is broken is none. */
export function editables({ extensions, payload }: Artifact): readonly Editable[] {
  const offer = extensions?.members.get(EDITS);
  const call = payload.members.get("call");
  const message = call instanceof JsonObject ? call.members.get("message") : undefined;
  if (offer === undefined || !(message instanceof JsonObject)) return [];
  try {
    return readOffer(offer, message);
  } catch {
    return [];
  }
}

/** Whether the machine says that a change by the device that it asks made this artifact. */
export function isEdited({ extensions }: Artifact): boolean {
  return extensions?.members.get(EDITED) === true;
}

function readOffer(value: JsonValue, message: JsonObject): Editable[] {
  const places = list(pointer)(value, EDITS);
  const isTwice = places.some((one, at) => places.some((other, index) => index !== at && isAround(one, other)));
  if (places.length < 1 || places.length > MAX_PLACES || isTwice)
    throw new FormatError(EDITS, `must be 1 to ${MAX_PLACES} pointers to different members`);
  return places.map((place) => {
    const member = resolve(message, place);
    if (typeof member === "string") return { place, text: member, isWords: false };
    return { place, text: wordsOf(member).map(quoted).join(" "), isWords: true };
  });
}

/** Whether a pointer leads to what another one leads to, or around it: two changes of one member have no order. */
function isAround(one: Pointer, other: Pointer): boolean {
  return `${other.source}/`.startsWith(`${one.source}/`);
}

function wordsOf(value: JsonValue | undefined): readonly string[] {
  const words = value instanceof JsonArray ? value.items : [];
  const isOfTexts = (items: readonly JsonValue[]): items is readonly string[] =>
    items.length > 0 && items.every((item) => typeof item === "string");
  if (isOfTexts(words)) return words;
  throw new FormatError(EDITS, "names something else than a text or the words of a command");
}

/** Whether an edit changes something, and nothing but what is offered. */
export function isEditOf(edit: Edit, offered: readonly Editable[]): boolean {
  const changes = Object.entries(edit);
  const isOffered = ([place, text]: readonly [string, string]): boolean =>
    text.isWellFormed() && offered.some((one) => one.place.source === place && one.text !== text);
  return changes.length > 0 && changes.every(isOffered);
}

/**
 * The message of a call as an edit makes it. Only texts are changed here: the words of a command are split by the machine that
 * runs it. Throws a `FormatError` if the edit has those, or changes what is not offered.
 */
export function applyEdit(message: JsonObject, offered: readonly Editable[], edit: Edit): JsonObject {
  if (!isEditOf(edit, offered)) throw new FormatError("edit", "changes what is not offered, or nothing");
  const changed = offered.filter(({ place }) => Object.hasOwn(edit, place.source));
  if (changed.some(({ isWords }) => isWords)) throw new FormatError("edit", "has words that the machine splits");
  return changed.reduce(
    (whole, { place }) => parseObject(written(whole, place.tokens, edit[place.source] ?? "")),
    message,
  );
}

/** A value as JSON text, with another text at a place in it. What is not at this place stays as it was written. */
function written(value: JsonValue, place: readonly string[] | undefined, text: string): string {
  if (place?.length === 0) return JSON.stringify(text);
  if (place === undefined && value instanceof JsonObject) return value.source;
  const below = (token: string): readonly string[] | undefined => (place?.[0] === token ? place.slice(1) : undefined);
  if (value instanceof JsonObject) {
    const members = [...value.members].map(
      ([name, member]) => `${JSON.stringify(name)}:${written(member, below(name), text)}`,
    );
    return `{${members.join(",")}}`;
  }
  if (value instanceof JsonArray)
    return `[${value.items.map((item, at) => written(item, below(`${at}`), text)).join(",")}]`;
  return value instanceof JsonNumber ? value.literal : JSON.stringify(value);
}
