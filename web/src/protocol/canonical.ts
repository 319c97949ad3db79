// Canonical form: RFC 8785 (JCS). Written from our own tree and not with a package: packages take JavaScript objects, which
// have lost duplicate members and the digits of numbers. The vectors and npm's `canonicalize` are compared in the tests.

import { type Bytes, utf8 } from "./bytes.ts";
import { UnsafeNumberError } from "./errors.ts";
import { JsonArray, JsonNumber, JsonObject, type JsonValue, parse } from "./json.ts";

/** The canonical form, whatever the numbers are: for recognising equal values. */
export function canonical(value: JsonValue): Bytes {
  return utf8(write(value, [], false));
}

/**
 * The canonical form of an object without one member: what hashes and signatures cover. Throws {@link UnsafeNumberError}
 * for a number outside of ±(2^53−1).
 */
export function canonicalWithout(object: JsonObject, member: string): Bytes {
  return canonicalWithoutPaths(object, [[member]]);
}

/**
 * As {@link canonicalWithout}, without several members: each is named by the members on the way to it. An object whose last
 * member is left out stays, empty.
 */
export function canonicalWithoutPaths(object: JsonObject, paths: readonly (readonly string[])[]): Bytes {
  return utf8(write(object, paths, true));
}

/** The canonical form of a value of JavaScript that consists of JSON. */
export function canonicalOf(value: unknown): Bytes {
  return canonical(parse(JSON.stringify(value)));
}

function write(value: JsonValue, without: readonly (readonly string[])[], isSafe: boolean): string {
  if (value instanceof JsonObject) {
    const isLeftOut = (name: string): boolean => without.some((path) => path.length === 1 && path[0] === name);
    const names = [...value.members.keys()].filter((name) => !isLeftOut(name));
    // The default order of strings is that of UTF-16 code units, which RFC 8785 wants.
    const members = names.sort().map((name) => {
      const member = value.members.get(name) ?? null;
      const inside = without.filter(([first]) => first === name).map(([, ...rest]) => rest);
      return `${JSON.stringify(name)}:${write(member, inside, isSafe)}`;
    });
    return `{${members.join(",")}}`;
  }
  if (value instanceof JsonArray) return `[${value.items.map((item) => write(item, [], isSafe)).join(",")}]`;
  if (value instanceof JsonNumber) {
    if (isSafe && !isSafeNumber(value.literal)) throw new UnsafeNumberError(value.literal);
    return JSON.stringify(value.value);
  }
  return JSON.stringify(value);
}

const LIMIT = "9007199254740991";

/** Whether the value is within ±(2^53−1). By its digits: a double would round 9007199254740991.4 to a safe number. */
function isSafeNumber(literal: string): boolean {
  const [mantissa = "", exponent = "0"] = literal.replace(/^-/, "").split(/[eE]/);
  const [whole = "", fraction = ""] = mantissa.split(".");
  const digits = whole + fraction;
  const significant = digits.replace(/^0+/, "");
  if (significant === "") return true;
  const shift = Number(exponent);
  // Such an exponent is far above or far below everything.
  if (Math.abs(shift) > 1_000_000_000_000) return shift < 0;
  const integerDigits = whole.length - (digits.length - significant.length) + shift;
  if (integerDigits !== LIMIT.length) return integerDigits < LIMIT.length;
  const integer = significant.slice(0, LIMIT.length).padEnd(LIMIT.length, "0");
  return integer < LIMIT || (integer === LIMIT && /^0*$/.test(significant.slice(LIMIT.length)));
}
