// Reads an object member by member, with errors that name the member and the rule.

import { utf8 } from "./bytes.ts";
import { FormatError } from "./errors.ts";
import { JsonArray, JsonNumber, JsonObject, type JsonValue } from "./json.ts";
import { Timestamp } from "./timestamp.ts";

/** Reads a value; `at` is its path, for errors. */
export type Read<T> = (value: JsonValue, at: string) => T;

/** The members of an object that have not been taken yet. */
export class Members {
  readonly object: JsonObject;
  readonly #at: string;
  readonly #left: Set<string>;

  constructor(value: JsonValue, at = "") {
    this.object = object(value, at);
    this.#at = at;
    this.#left = new Set(this.object.members.keys());
  }

  /** Takes a member that must be there. */
  required<T>(name: string, read: Read<T>): T {
    const value = this.object.members.get(name);
    if (value === undefined) throw new FormatError(this.#path(name), "is missing");
    this.#left.delete(name);
    return read(value, this.#path(name));
  }

  /** Takes a member that may be absent; `null` is not absence. */
  optional<T>(name: string, read: Read<T>): T | undefined {
    return this.object.members.has(name) ? this.required(name, read) : undefined;
  }

  /** Whether the member is there. */
  has(name: string): boolean {
    return this.object.members.has(name);
  }

  /** Ends an object that is closed: a member that is left is an error. */
  close(): void {
    if (this.#left.size > 0) throw new FormatError(this.#at, "has a member that is not known here");
  }

  #path(name: string): string {
    return this.#at === "" ? name : `${this.#at}.${name}`;
  }
}

/** Any value, as it is. */
export const any: Read<JsonValue> = (value) => value;

/** An object. */
export const object: Read<JsonObject> = (value, at) => {
  if (value instanceof JsonObject) return value;
  throw new FormatError(at, "is not an object");
};

/** A string. */
export const text: Read<string> = (value, at) => {
  if (typeof value === "string") return value;
  throw new FormatError(at, "is not a string");
};

/** A string of at least one character. */
export const nonEmpty: Read<string> = (value, at) => {
  const read = text(value, at);
  if (read !== "") return read;
  throw new FormatError(at, "must not be empty");
};

/** True or false. */
export const flag: Read<boolean> = (value, at) => {
  if (typeof value === "boolean") return value;
  throw new FormatError(at, "is not true or false");
};

/** A number. */
export const number: Read<number> = (value, at) => {
  if (value instanceof JsonNumber) return value.value;
  throw new FormatError(at, "is not a number");
};

/** An integer from 0 to 2^53−1. */
export const count: Read<number> = (value, at) => {
  const read = number(value, at);
  if (Number.isSafeInteger(read) && read >= 0) return read;
  throw new FormatError(at, "is not an integer from 0 to 9007199254740991");
};

/** The number 1, written as `1`: the version of a format. */
export const one: Read<1> = (value, at) => {
  if (value instanceof JsonNumber && value.literal === "1") return 1;
  throw new FormatError(at, "must be 1");
};

/** A point in time. */
export const time: Read<Timestamp> = (value, at) => {
  const read = Timestamp.parse(text(value, at));
  if (read !== undefined) return read;
  throw new FormatError(at, "is not an RFC 3339 date and time");
};

/** An id: 1 to 256 bytes of UTF-8 without control characters. */
export const id: Read<string> = (value, at) => {
  const read = text(value, at);
  if (isId(read)) return read;
  throw new FormatError(at, "must be 1 to 256 bytes without control characters");
};

/** Whether a text can be an id. */
export function isId(read: string): boolean {
  return read !== "" && read.isWellFormed() && utf8(read).length <= 256 && !/[\u0000-\u001f\u007f-\u009f]/.test(read);
}

/** A SHA-256 in 64 lowercase hex digits. */
export const sha256: Read<string> = (value, at) => {
  const read = text(value, at);
  if (/^[0-9a-f]{64}$/.test(read)) return read;
  throw new FormatError(at, "is not 64 lowercase hex digits");
};

/** One of the words of a closed list. */
export function word<const T extends string>(words: readonly T[]): Read<T> {
  return (value, at) => {
    const read = text(value, at);
    const known = words.find((candidate) => candidate === read);
    if (known !== undefined) return known;
    throw new FormatError(at, `is none of ${words.join(" ")}`);
  };
}

/** An array of which each item is read in the same way. */
export function list<T>(read: Read<T>): Read<T[]> {
  return (value, at) => {
    if (!(value instanceof JsonArray)) throw new FormatError(at, "is not an array");
    return value.items.map((item, index) => read(item, `${at}[${index}]`));
  };
}
