// JSON pointers (RFC 6901): the way to a value in a message.

import { FormatError } from "../errors.ts";
import { JsonArray, JsonObject, type JsonValue } from "../json.ts";
import { type Read, text } from "../members.ts";

/** A pointer to something below the root. */
export interface Pointer {
  /** As it is written, such as `/tool_input/a~1b/0`. There is one way to write it. */
  readonly source: string;
  readonly tokens: readonly string[];
}

/** Reads a pointer. The empty one, which is the whole message, is none here. */
export const pointer: Read<Pointer> = (value, at) => {
  const source = text(value, at);
  if (!/^(?:\/(?:[^~/]|~[01])*)+$/.test(source)) throw new FormatError(at, "is not a JSON pointer");
  // In this order: `~01` is `~1` and not a slash.
  const tokens = source.slice(1).split("/");
  return { source, tokens: tokens.map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~")) };
};

/** The value that a pointer leads to; `undefined` if there is none. */
export function resolve(root: JsonValue, { tokens }: Pointer): JsonValue | undefined {
  let value: JsonValue | undefined = root;
  for (const token of tokens) {
    if (value instanceof JsonObject) value = value.members.get(token);
    else if (value instanceof JsonArray) value = isIndex(token) ? value.items[Number(token)] : undefined;
    else return undefined;
  }
  return value;
}

function isIndex(token: string): boolean {
  return /^(?:0|[1-9][0-9]*)$/.test(token);
}

/** The last name in a pointer; numbers, the places in lists, are skipped. */
export function lastName({ tokens }: Pointer): string | undefined {
  return tokens.findLast((token) => !/^[0-9]+$/.test(token));
}

/** The child of a place. */
function below(place: string, token: string): string {
  return `${place}/${token.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Every string, number, boolean, null, empty object and empty list below a place, each with its pointer, in their order. */
export function leaves(value: JsonValue, place = ""): [string, JsonValue][] {
  if (value instanceof JsonObject && value.members.size > 0)
    return [...value.members].flatMap(([name, member]) => leaves(member, below(place, name)));
  if (value instanceof JsonArray && value.items.length > 0)
    return value.items.flatMap((item, at) => leaves(item, below(place, `${at}`)));
  return [[place, value]];
}
