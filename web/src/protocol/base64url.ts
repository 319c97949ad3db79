// Base64url without padding, in which each byte string has exactly one text.

import type { Bytes } from "./bytes.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const VALUES = new Map(Array.from(ALPHABET, (letter, value) => [letter.charCodeAt(0), value]));
const LETTERS = Uint8Array.from(ALPHABET, (letter) => letter.charCodeAt(0));
const decoder = new TextDecoder();

/** The text of the bytes. */
export function encode(bytes: Uint8Array): string {
  const text = new Uint8Array(Math.ceil((bytes.length * 8) / 6));
  let at = 0;
  for (let index = 0; index < bytes.length; index += 3) {
    const [one, two, three] = [bytes[index] ?? 0, bytes[index + 1] ?? 0, bytes[index + 2] ?? 0];
    const group = (one << 16) | (two << 8) | three;
    const letters = Math.min(4, text.length - at);
    for (let letter = 0; letter < letters; letter += 1)
      text[at + letter] = LETTERS[(group >> (18 - 6 * letter)) & 63] ?? 0;
    at += letters;
  }
  return decoder.decode(text);
}

/** The bytes; `undefined` if the text is not the one text of any bytes. */
export function decode(text: string): Bytes | undefined {
  if (text.length % 4 === 1) return undefined;
  const bytes = new Uint8Array(Math.floor((text.length * 6) / 8));
  let [bits, count, at] = [0, 0, 0];
  for (let index = 0; index < text.length; index += 1) {
    const value = VALUES.get(text.charCodeAt(index));
    if (value === undefined) return undefined;
    bits = ((bits << 6) | value) & 0xffff;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes[at] = (bits >> count) & 0xff;
      at += 1;
    }
  }
  // Bits that are left over must be zero: otherwise several texts would mean the same bytes.
  return (bits & ((1 << count) - 1)) === 0 ? bytes : undefined;
}

/** As {@link decode}, and `undefined` too if there are not exactly `length` bytes. */
export function decodeExactly(text: string, length: number): Bytes | undefined {
  const bytes = decode(text);
  return bytes?.length === length ? bytes : undefined;
}
