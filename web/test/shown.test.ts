// What people see: safe text, and the first line of payloads.

import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { utf8 } from "../src/protocol/bytes.ts";
import { sha256Hex } from "../src/protocol/hash.ts";
import { parseObject } from "../src/protocol/json.ts";
import { headline, isDangerousPayload, type Payload, readPayload } from "../src/protocol/payload/index.ts";
import { visible, visibleCode, visibleLines } from "../src/protocol/visible.ts";

const DANGEROUS =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\p{Default_Ignorable_Code_Point}]/u;

describe("text from others", () => {
  test("has nothing invisible or direction-changing when it is shown", () => {
    let found = 0;
    for (let code = 0; code <= 0x10ffff; code += 1) {
      const character = String.fromCodePoint(code);
      if (!DANGEROUS.test(character)) continue;
      found += 1;
      // Private and unassigned planes are large and alike.
      if (code > 0x20000 && code % 97 !== 0) continue;
      const notation = `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
      for (const text of [`a${character}b`, character, ` ${character}\u0301`]) {
        expect(visible(text)).toContain(notation);
        expect(visibleCode(text).includes(character)).toBe(false);
      }
    }
    expect(found).toBeGreaterThan(100_000);
  });

  test("stays as it is if it is ordinary, and what imitates something else is shown", () => {
    for (const text of [
      "git push --force origin main",
      "naïve café, Straße, Łódź, Việt Nam",
      "cafe\u0301",
      "Проверка связи",
      "Ελληνικά",
      "漢字かな交じり文",
      "한국어",
      "हिन्दी",
      "עברית",
      "العربية",
      "price: 5 € 🎉",
      "“so” – it’s…",
    ]) {
      expect(visible(text)).toBe(text);
    }
    expect(visible("pаypal")).toBe("p⟨U+0430⟩ypal");
    expect(visibleCode("rm -rf ／")).toBe("rm -rf ⟨U+FF0F⟩");
    expect(visibleCode("ls；rm")).toBe("ls⟨U+FF1B⟩rm");
    expect(visible("⟨U+202E⟩")).toBe("⟨U+27E8⟩U+202E⟨U+27E9⟩");
    expect(visible("a\u0301\u0301\u0301\u0301")).toBe("a\u0301\u0301⟨U+0301⟩⟨U+0301⟩");
    expect(visible("\u0338x")).toBe("⟨U+0338⟩x");
    expect(visible("one\ntwo\r\x1b[2J")).toBe("one⟨U+000A⟩two⟨U+000D⟩⟨U+001B⟩[2J");
    expect(visibleLines("a\r\nb\n")).toEqual(["a⟨U+000D⟩", "b", ""]);
    expect(visible("\ud800")).toBe("⟨U+D800⟩");
  });

  test("never makes two texts look the same", () => {
    const text = fc.string({ unit: fc.constantFrom(..."a⟨⟩U+0-9\u202e\u200b "), maxLength: 12 });
    fc.assert(
      fc.property(text, text, (one, two) => {
        expect(visible(one) === visible(two)).toBe(one === two);
      }),
      { numRuns: 3_000 },
    );
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), (any) => {
        expect(DANGEROUS.test(visible(any))).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });

  test("of a large diff is shown quickly", () => {
    const lines = Array.from(
      { length: 20_000 },
      (_, number) => `+ line ${number} of a change with some words, ünd Umlaute`,
    );
    const start = performance.now();
    expect(visibleLines(lines.join("\n"))).toHaveLength(20_000);
    expect(performance.now() - start).toBeLessThan(5_000);
  });
});

const read = (type: Parameters<typeof readPayload>[0], payload: object): Payload =>
  readPayload(type, parseObject(JSON.stringify({ schema: "org.proto.payload", version: 1, ...payload })));

describe("a payload", () => {
  const content = "#!/bin/sh\nrm -rf build\n";
  const file = { path: "clean.sh", role: "script", digest: sha256Hex(utf8(content)), size: content.length, content };
  const patchFile = {
    path: "src/name",
    status: "modified",
    added: 1,
    removed: 1,
    baseDigest: "0".repeat(64),
    resultDigest: "1".repeat(64),
  };
  const diff = "--- a/src/name\n+++ b/src/name\n@@ -1 +1 @@\n-old\n+new\n";

  test("has a first line that says what will happen", () => {
    const lines: [Payload, string][] = [
      [
        read("command.review", { argv: ["sh", "clean file.sh", "it's"], cwd: "/x", files: [file] }),
        "sh 'clean file.sh' 'it'\\''s'",
      ],
      [
        read("command.review", { shell: "a && b\u202e", cwd: "/x", effects: [{ effect: "deletes" }] }),
        "a && b⟨U+202E⟩",
      ],
      [read("patch.review", { diff, files: [patchFile] }), "1 file, +1 −1 in src/name"],
      [
        read("patch.review", { diff, files: [patchFile, { ...patchFile, path: "src/b/c", added: 0, removed: 0 }] }),
        "2 files, +1 −1 in src",
      ],
      [read("plan.review", { text: "\n# Fix the login ##\n\nMore." }), "Fix the login"],
      [read("task.review", { text: "no heading", steps: ["First"] }), "First"],
      [read("plan.review", { text: "\n  plain \n" }), "plain"],
      [
        read("checkpoint.review", {
          summary: "here",
          changes: ["x"],
          earlier: [{ requestId: "r", artifactHash: "2".repeat(64) }],
        }),
        "here",
      ],
    ];
    for (const [payload, line] of lines) {
      expect(payload.kind).not.toBe("raw");
      expect(headline(payload)).toBe(line);
    }
    expect(lines.map(([payload]) => isDangerousPayload(payload)).filter(Boolean)).toHaveLength(1);
    expect(isDangerousPayload(read("command.review", { shell: "x", cwd: "/", effects: [{ effect: "network" }] }))).toBe(
      false,
    );
  });

  test("that breaks a rule is shown as the JSON that it is", () => {
    const broken: [Parameters<typeof readPayload>[0], object][] = [
      ["command.review", { cwd: "/" }],
      ["command.review", { argv: ["a"], shell: "a", cwd: "/" }],
      ["command.review", { argv: [""], cwd: "/" }],
      ["command.review", { argv: ["a"], cwd: "/", more: 1 }],
      ["command.review", { argv: ["a"], cwd: "/", files: [{ ...file, digest: "0".repeat(64) }] }],
      ["command.review", { argv: ["a"], cwd: "/", files: [{ ...file, size: 1 }] }],
      ["command.review", { argv: ["a"], cwd: "/", env: [{ name: "A=B" }] }],
      ["command.review", { argv: ["a"], cwd: "/", effects: [{ effect: "explodes" }] }],
      ["patch.review", { diff, files: [] }],
      ["patch.review", { diff, files: [{ ...patchFile, added: 0 }] }],
      ["patch.review", { diff, files: [{ ...patchFile, status: "added" }] }],
      ["patch.review", { diff, files: [{ ...patchFile, previousPath: "x" }] }],
      ["plan.review", { text: "" }],
      ["checkpoint.review", { summary: "s", changes: [""] }],
      ["plan.review", { version: 3, text: "x" }],
      ["plan.review", { schema: "other", text: "x" }],
      ["plan.review", { text: "x".repeat(2 * 2 ** 20) }],
    ];
    for (const [type, payload] of broken) {
      const shown = read(type, payload);
      expect(shown.kind, JSON.stringify(payload).slice(0, 80)).toBe("raw");
      expect(shown.kind === "raw" && shown.text.length).toBeGreaterThan(10);
      expect(headline(shown)).toContain("bytes of JSON");
      expect(isDangerousPayload(shown)).toBe(false);
    }
  });
});
