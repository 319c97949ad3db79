// Beside Rust: safe text, first lines, times and bundles.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { ARTIFACT_TYPES } from "../../src/protocol/artifact.ts";
import { ownBundle, readBundle, verifyBundle } from "../../src/protocol/bundle.ts";
import { parseEnvelope } from "../../src/protocol/envelope.ts";
import { parseObject } from "../../src/protocol/json.ts";
import { headline, readPayload } from "../../src/protocol/payload/index.ts";
import { newPin, Pins } from "../../src/protocol/pins.ts";
import { readReceipt, signReceipt } from "../../src/protocol/receipt.ts";
import { decide } from "../../src/protocol/reply.ts";
import { buildRequest, openRequest } from "../../src/protocol/request.ts";
import { Timestamp } from "../../src/protocol/timestamp.ts";
import { visible, visibleCode } from "../../src/protocol/visible.ts";
import { newDevice, Random } from "../random.ts";
import { Rust } from "./rust.ts";

let rust: Rust;
beforeAll(() => {
  rust = new Rust();
});
afterAll(() => rust.stop());

describe("beside Rust", () => {
  test("every code point is shown in the same way", { timeout: 300_000 }, async () => {
    let [same, unassigned] = [0, 0];
    const chunks = Array.from({ length: 0x110000 / 256 }, (_, chunk) => chunk);
    await Promise.all(
      chunks.map(async (chunk) => {
        // A plane of private or unassigned characters is all alike.
        if (chunk >= 0x400 && chunk % 16 !== 0) return;
        const codes = Array.from({ length: 256 }, (_, at) => chunk * 256 + at).filter(
          (code) => code < 0xd800 || code > 0xdfff,
        );
        const characters = codes.map((code) => String.fromCodePoint(code));
        const text = characters.map((character) => ` ${character}a${character}. `).join("");
        const theirs = await rust.ask("visible", { text });
        if (theirs.prose === visible(text) && theirs.code === visibleCode(text)) {
          same += codes.length;
          return;
        }
        for (const character of characters) {
          const single = ` ${character}a${character}. `;
          const wanted = await rust.ask("visible", { text: single });
          // One side may know a newer Unicode; then the older one shows the code point.
          if (wanted.prose !== visible(single) || wanted.code !== visibleCode(single)) {
            const isNewer = wanted.prose.includes("⟨U+") !== visible(single).includes("⟨U+");
            expect(
              isNewer,
              `U+${character.codePointAt(0)?.toString(16)}: ${JSON.stringify(wanted)} ${visible(single)}`,
            ).toBe(true);
            unassigned += 1;
          } else same += 1;
        }
      }),
    );
    expect(same).toBeGreaterThan(100_000);
    console.log(`shown alike: ${same}, known to one side only: ${unassigned}`);
    expect(unassigned).toBeLessThan(12_000);
  });

  test("random texts are shown in the same way", { timeout: 300_000 }, async () => {
    const pool = [..."aZ09 .-/\u0301\u0300\u202e\u200b\u00e9\u0430\u03b1\uff0f\u2010\u2028漢⟨⟩\u0000\u00a0🎉"];
    for (let round = 0; round < 1_000; round += 1) {
      const random = new Random(round);
      const text = Array.from({ length: random.below(30) }, () => random.of(pool)).join("");
      expect(await rust.ask("visible", { text })).toEqual({ prose: visible(text), code: visibleCode(text) });
    }
  });

  test("payloads have the same first line", { timeout: 300_000 }, async () => {
    let known = 0;
    for (let round = 0; round < 2_000; round += 1) {
      const random = new Random(round);
      const artifactType = random.of(ARTIFACT_TYPES);
      const payload = JSON.stringify(somePayload(random, artifactType));
      const read = readPayload(artifactType, parseObject(payload));
      expect(await rust.ask("payload", { artifactType, payload }), payload).toEqual({
        headline: headline(read),
        isRaw: read.kind === "raw",
      });
      if (read.kind !== "raw") known += 1;
    }
    expect(known).toBeGreaterThan(300);
  });

  test("times are read in the same way", async () => {
    const pieces = [
      "2026",
      "0000",
      "9999",
      "1969",
      "-",
      "02",
      "29",
      "30",
      "12",
      "31",
      "T",
      "t",
      " ",
      ":",
      "23",
      "59",
      "60",
      "61",
      "00",
      ".5",
      ".123456789",
      "Z",
      "z",
      "+01:00",
      "-00:30",
      "+24:00",
      ",",
    ];
    for (let round = 0; round < 3_000; round += 1) {
      const random = new Random(round);
      const of = (...choices: string[]): string => (random.isOneIn(12) ? random.of(pieces) : random.of(choices));
      const date = `${of("2026", "2024", "0000", "9999", "1900")}-${of("02", "12", "01", "13")}-${of("28", "29", "31", "30", "01")}`;
      const text = `${date}${of("T", "t")}${of("00", "23", "12", "24")}:${of("00", "59", "60")}:${of("00", "59", "60")}${of("", ".5", ".999999999")}${of("Z", "z", "+01:00", "-23:59", "+00:60")}`;
      expect(await rust.ask("time", { text }), text).toBe(Timestamp.parse(text)?.toString() ?? null);
    }
  });

  test("bundles prove the same", async () => {
    const random = new Random(7);
    const NOW = Timestamp.ofMillis(Date.UTC(2026, 10, 16, 12));
    const [robot, ada] = [await newDevice(random, "robot"), await newDevice(random, "ada")];
    const machine = newPin({ role: "enforcer", id: "robot" }, robot.keys.bundle, NOW);
    const people = new Pins().add(newPin({ role: "approver", id: "ada" }, ada.keys.bundle, NOW));
    const draft = {
      artifactType: "plan.review",
      payload: '{"text":"x"}',
      repoRef: "r",
      repoName: "n",
      expiresAt: NOW.plus(60_000),
    } as const;
    const built = await buildRequest(draft, robot, people, NOW);
    const envelope = parseEnvelope(built.envelope.replace("artifact.submit", "approval.request"));
    const request = await openRequest(envelope, ada, new Pins([machine]), NOW);
    const sent = await decide(
      request,
      { outcome: "approve", scope: "once", validUntil: NOW.plus(60_000), words: {} },
      ada,
      NOW,
    );
    const receipt = await signReceipt(robot.keys.signer, {
      requestId: built.requestId,
      use: 1,
      decisionHash: sent.hash,
      decisionNonce: sent.nonce,
      effectHash: "0".repeat(64),
      enforcerId: "robot",
      at: `${NOW}`,
      outcome: { outcome: "applied" },
    });
    const own = ownBundle(sent.source, ada, machine, readReceipt(parseObject(receipt)));
    const whole = `${own.slice(0, -1)},"artifact":${JSON.stringify(built.artifact)}}`;
    for (const text of [own, whole])
      expect(await rust.ask("bundle", { text })).toEqual((await verifyBundle(readBundle(text))).findings);
    for (let round = 0; round < 300; round += 1) {
      const at = random.below(whole.length);
      const text = whole.slice(0, at) + random.of([...'aA0"{}:,1 \\']) + whole.slice(at + 1);
      const theirs = await rust.ask("bundle", { text });
      let ours: unknown;
      try {
        ours = (await verifyBundle(readBundle(text))).findings;
      } catch {
        ours = { refused: expect.any(String) };
      }
      expect(theirs, text).toEqual(ours);
    }
  });
});

function somePayload(random: Random, artifactType: (typeof ARTIFACT_TYPES)[number]): object {
  const marker = {
    schema: "org.proto.payload",
    version: random.isOneIn(20) ? 3 : 1 + random.below(2),
    ...(random.isOneIn(3) ? {} : { state: random.of(["examined", "opaque", "notExamined"]) }),
    ...(random.isOneIn(5) ? { [random.of(["agent", "project", "branch", "task", "words"])]: random.text(5) } : {}),
  };
  const more = random.isOneIn(10) ? { [random.text(5)]: random.json(1) } : {};
  const effects = random.isOneIn(2)
    ? {
        effects: random.isOneIn(2)
          ? []
          : [{ effect: random.of(["deletes", "network", "loadsCode", "none"]), detail: random.text(5) }],
      }
    : {};
  if (artifactType === "command.review") {
    const invocation = random.isOneIn(2)
      ? { shell: random.text() }
      : { argv: Array.from({ length: random.below(4) }, () => random.text(12)) };
    return { ...marker, ...invocation, cwd: random.text(8), ...effects, ...more };
  }
  if (artifactType === "patch.review") {
    const body = Array.from({ length: random.below(6) }, () => `${random.of(["+", "-", " ", "\\"])}${random.text(4)}`);
    const diff = `@@ -1,${random.below(4)} +1,${random.below(4)} @@\n${body.join("\n")}`;
    const count = (sign: string): number =>
      diff.split("\n").filter((line, at) => at > 0 && line.startsWith(sign)).length;
    const files = [
      {
        path: random.text(10),
        status: "modified",
        added: count("+"),
        removed: count("-"),
        baseDigest: "0".repeat(64),
        resultDigest: "1".repeat(64),
      },
    ];
    return { ...marker, diff, files, ...effects, ...more };
  }
  if (artifactType === "checkpoint.review") return { ...marker, summary: random.text(), ...effects, ...more };
  const text = random.of(["# ", "## ", "#", "", "####### ", "\r\n# "]) + random.text(20);
  return { ...marker, text, ...(random.isOneIn(2) ? { steps: [random.text(9)] } : {}), ...effects, ...more };
}
