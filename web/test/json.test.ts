// Strict JSON and canonical form, beside JSON.parse and npm's canonicalize.

import canonicalize from "canonicalize";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { fromUtf8, utf8 } from "../src/protocol/bytes.ts";
import { canonical, canonicalWithout } from "../src/protocol/canonical.ts";
import { JsonError, type JsonFault, UnsafeNumberError } from "../src/protocol/errors.ts";
import { JsonArray, JsonNumber, JsonObject, type JsonValue, parse, parseObject } from "../src/protocol/json.ts";

const faultOf = (text: string | Uint8Array): JsonFault | undefined => {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    if (error instanceof JsonError) return error.fault;
    throw error;
  }
};

/** The same value as JavaScript has it. */
function plain(value: JsonValue): unknown {
  if (value instanceof JsonNumber) return value.value;
  if (value instanceof JsonArray) return value.items.map(plain);
  if (value instanceof JsonObject)
    return Object.fromEntries([...value.members].map(([name, member]) => [name, plain(member)]));
  return value;
}

describe("strict JSON", () => {
  test("refuses what two readers could read differently", () => {
    const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
    const cases: [string | Uint8Array, JsonFault | undefined][] = [
      ['{"a":1,"a":2}', "duplicate-member"],
      ['{"a":{"b":1,"\\u0062":2}}', "duplicate-member"],
      ['{"__proto__":1,"__proto__":2}', "duplicate-member"],
      ['"\\ud800"', "lone-surrogate"],
      ['"\\udc00\\ud800"', "lone-surrogate"],
      ['{"\\ud83d":1}', "lone-surrogate"],
      ['"\\ud83d\\ude00"', undefined],
      ["\ufeff{}", "byte-order-mark"],
      [Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d), "byte-order-mark"],
      [Uint8Array.of(0x22, 0xff, 0x22), "not-utf8"],
      ['"\ud800"', "not-utf8"],
      [deep(128), undefined],
      [deep(129), "too-deep"],
      ["1e400", "number-out-of-range"],
      ["-1e400", "number-out-of-range"],
      ["1e-400", undefined],
      ...[
        "",
        " ",
        "{",
        "[1,]",
        '{"a":1,}',
        "{a:1}",
        "01",
        "+1",
        ".5",
        "1.",
        "1e",
        "- 1",
        "NaN",
        "Infinity",
        "nul",
        "'a'",
      ].map((text): [string, JsonFault] => [text, "syntax"]),
      ...['"a\nb"', '"\\x41"', '"\\u12g4"', '"\u0000"', '"a', "1 2", "{} x", "/* */1", "\u00a01", "\u000b1"].map(
        (text): [string, JsonFault] => [text, "syntax"],
      ),
    ];
    for (const [text, fault] of cases) expect(faultOf(text), String(text).slice(0, 40)).toBe(fault);
  });

  test("an object keeps its text, and no name has a meaning", () => {
    const object = parseObject(' {"a": { "b" : [1.50] } , "__proto__":{"x":1}} ');
    const inner = object.members.get("a");
    expect(inner instanceof JsonObject && inner.source).toBe('{ "b" : [1.50] }');
    expect([...object.members.keys()]).toEqual(["a", "__proto__"]);
    expect(fromUtf8(canonical(object))).toBe('{"__proto__":{"x":1},"a":{"b":[1.5]}}');
  });

  test("reads what JSON.parse reads, in the same way", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), fc.nat(3), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        expect(plain(parse(text))).toEqual(JSON.parse(text));
        expect(plain(parse(utf8(text)))).toEqual(JSON.parse(text));
      }),
      { numRuns: 2_000 },
    );
  });

  test("accepts nothing that JSON.parse refuses", () => {
    const pieces = fc.constantFrom(...'{}[],:"\\u0041ntrue1-.eE+ \n', '"a"', "null", "false", "\\", "12", "\u2028");
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 14 }), (parts) => {
        const text = parts.join("");
        let theirs: unknown;
        try {
          theirs = JSON.parse(text);
        } catch {
          expect(faultOf(text), text).toBeDefined();
          return;
        }
        const fault = faultOf(text);
        if (fault === undefined) expect(plain(parse(text))).toEqual(theirs);
        else expect(fault, text).toMatch(/duplicate-member|lone-surrogate|number-out-of-range|too-deep/);
      }),
      { numRuns: 5_000 },
    );
  });
});

describe("canonical form", () => {
  test("is that of canonicalize, and of itself", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "grapheme", maxDepth: 6 }), (value) => {
        const form = fromUtf8(canonical(parse(JSON.stringify(value)))) ?? "";
        expect(form).toBe(canonicalize(JSON.parse(JSON.stringify(value))));
        expect(fromUtf8(canonical(parse(form)))).toBe(form);
      }),
      { numRuns: 2_000 },
    );
  });

  test("of what is hashed has no number outside of the safe range, however it is spelled", () => {
    const refused = [
      "9007199254740992",
      "9007199254740993",
      "-9007199254740993",
      "9007199254740993.0",
      "9007199254740991.4",
      "9.0071992547409914e15",
      "90071992547409920e-1",
      "1e20",
      "1E+20",
      "0.1e21",
      "100000000000000000000",
      "1e16",
    ];
    for (const literal of refused) {
      const object = parseObject(`{"n":[${literal}]}`);
      expect(() => canonicalWithout(object, "hash"), literal).toThrow(UnsafeNumberError);
      expect(canonical(object).length).toBeGreaterThan(0);
    }
    const safe: Record<string, string> = {
      "9007199254740991": "9007199254740991",
      "-9007199254740991.000": "-9007199254740991",
      "90071992547409910e-1": "9007199254740991",
      "9.007199254740991e15": "9007199254740991",
      "0e99999999999999999999": "0",
      "1e-99999999999999999999": "0",
      "-0": "0",
      "-0.0": "0",
      "1e15": "1000000000000000",
      "0.000001": "0.000001",
      "1e-7": "1e-7",
      "4.50": "4.5",
    };
    for (const [literal, written] of Object.entries(safe)) {
      const form = canonicalWithout(parseObject(`{"n":${literal},"hash":0}`), "hash");
      expect(fromUtf8(form), literal).toBe(`{"n":${written}}`);
    }
  });
});
