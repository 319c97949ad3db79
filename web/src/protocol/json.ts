// Strict JSON: one reading for one text. Objects keep their text, because bodies are hashed and kept as they were written.

import { fromUtf8 } from "./bytes.ts";
import { JsonError } from "./errors.ts";

/** Levels of arrays and objects that a text can have. */
export const MAX_NESTING = 128;

/** Any JSON value. */
export type JsonValue = null | boolean | string | JsonNumber | JsonArray | JsonObject;

/** A number with its digits, which say more than a double can. */
export class JsonNumber {
  readonly literal: string;
  readonly value: number;

  constructor(literal: string) {
    this.literal = literal;
    this.value = Number(literal);
  }
}

/** An array. */
export class JsonArray {
  readonly items: readonly JsonValue[];

  constructor(items: readonly JsonValue[]) {
    this.items = items;
  }
}

/** An object with its text. No member has a meaning of its own, as `__proto__` has in JavaScript. */
export class JsonObject {
  readonly members: ReadonlyMap<string, JsonValue>;
  readonly #text: string;
  readonly #start: number;
  readonly #end: number;

  constructor(members: ReadonlyMap<string, JsonValue>, text: string, start: number, end: number) {
    this.members = members;
    this.#text = text;
    this.#start = start;
    this.#end = end;
  }

  /** The object as it was written, from `{` to `}`. */
  get source(): string {
    return this.#text.slice(this.#start, this.#end);
  }
}

/** Reads a text, or the bytes of one. Throws {@link JsonError}. */
export function parse(text: string | Uint8Array): JsonValue {
  const decoded = typeof text === "string" ? text : fromUtf8(text);
  if (decoded === undefined || !decoded.isWellFormed()) throw new JsonError("not-utf8", 0);
  if (decoded.startsWith("\ufeff")) throw new JsonError("byte-order-mark", 0);
  return new Parser(decoded).document();
}

/** Reads a text that must be an object. */
export function parseObject(text: string | Uint8Array): JsonObject {
  const value = parse(text);
  if (value instanceof JsonObject) return value;
  throw new JsonError("syntax", 0);
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const SPACE = /[ \t\n\r]*/y;
const HEX = /[0-9a-fA-F]{4}/y;
const ESCAPES = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);
const LITERALS: readonly (readonly [string, null | boolean])[] = [
  ["null", null],
  ["true", true],
  ["false", false],
];

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonValue {
    const value = this.#value(0);
    this.#take(SPACE);
    if (this.#at !== this.#text.length) throw this.#error("syntax");
    return value;
  }

  #error(fault: ConstructorParameters<typeof JsonError>[0]): JsonError {
    return new JsonError(fault, this.#at);
  }

  /** Moves over what matches here, and returns it. */
  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }

  /** The next character after white space. */
  #peek(): string {
    this.#take(SPACE);
    return this.#text.charAt(this.#at);
  }

  #expect(character: string): void {
    if (this.#peek() !== character) throw this.#error("syntax");
    this.#at += 1;
  }

  #value(depth: number): JsonValue {
    const first = this.#peek();
    if (first === "{" || first === "[") {
      if (depth === MAX_NESTING) throw this.#error("too-deep");
      return first === "{" ? this.#object(depth + 1) : this.#array(depth + 1);
    }
    if (first === '"') return this.#string();
    for (const [word, value] of LITERALS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    }
    return this.#number();
  }

  #number(): JsonNumber {
    const literal = this.#take(NUMBER);
    if (literal === "") throw this.#error("syntax");
    const number = new JsonNumber(literal);
    if (!Number.isFinite(number.value)) throw this.#error("number-out-of-range");
    return number;
  }

  #array(depth: number): JsonArray {
    this.#at += 1;
    const items: JsonValue[] = [];
    if (this.#peek() === "]") {
      this.#at += 1;
      return new JsonArray(items);
    }
    for (;;) {
      items.push(this.#value(depth));
      if (this.#peek() === "]") break;
      this.#expect(",");
    }
    this.#at += 1;
    return new JsonArray(items);
  }

  #object(depth: number): JsonObject {
    const start = this.#at;
    this.#at += 1;
    const members = new Map<string, JsonValue>();
    if (this.#peek() !== "}") {
      for (;;) {
        if (this.#peek() !== '"') throw this.#error("syntax");
        const name = this.#string();
        if (members.has(name)) throw this.#error("duplicate-member");
        this.#expect(":");
        members.set(name, this.#value(depth));
        if (this.#peek() === "}") break;
        this.#expect(",");
      }
    }
    this.#at += 1;
    return new JsonObject(members, this.#text, start, this.#at);
  }

  #string(): string {
    this.#at += 1;
    let text = this.#take(PLAIN);
    let isEscaped = false;
    while (this.#text.charAt(this.#at) === "\\") {
      this.#at += 1;
      text += this.#escape();
      text += this.#take(PLAIN);
      isEscaped = true;
    }
    if (this.#text.charAt(this.#at) !== '"') throw this.#error("syntax");
    this.#at += 1;
    // The text itself is well-formed, so only escapes can write half of a character.
    if (isEscaped && !text.isWellFormed()) throw this.#error("lone-surrogate");
    return text;
  }

  #escape(): string {
    const letter = this.#text.charAt(this.#at);
    this.#at += 1;
    if (letter === "u") {
      const digits = this.#take(HEX);
      if (digits === "") throw this.#error("syntax");
      return String.fromCharCode(Number.parseInt(digits, 16));
    }
    const character = ESCAPES.get(letter);
    if (character === undefined) throw this.#error("syntax");
    return character;
  }
}
