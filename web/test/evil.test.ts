// A gateway that lies: 10,000 changed keys, ciphertexts, envelopes, decisions, receipts, statements and prompts. Nothing that
// was changed opens or verifies as something else.

import { describe, expect, test } from "vitest";

import * as base64url from "../src/protocol/base64url.ts";
import { hex } from "../src/protocol/bytes.ts";
import { canonical } from "../src/protocol/canonical.ts";
import { parseEnvelope } from "../src/protocol/envelope.ts";
import { CountersignError } from "../src/protocol/errors.ts";
import { parseObject } from "../src/protocol/json.ts";
import { formatBundle, parseBundle } from "../src/protocol/keys.ts";
import { answerLink, answerTyped, typedDigits, verifyLinkAnswer } from "../src/protocol/pairing.ts";
import { newPin, type Party, Pins } from "../src/protocol/pins.ts";
import { buildPrompt, openPrompt } from "../src/protocol/prompt.ts";
import { openReceipt, receiptSession, signReceipt } from "../src/protocol/receipt.ts";
import { type Choice, decide, verifyDecision } from "../src/protocol/reply.ts";
import { buildRequest, openRequest } from "../src/protocol/request.ts";
import { openSnapshot, sealSnapshot } from "../src/protocol/session.ts";
import { parseStatement, signStatement, verifyStatement, vouchFor } from "../src/protocol/statement.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { type Device, newDevice, Random } from "./random.ts";

const ROUNDS = Number(process.env["COUNTERSIGN_MUTATIONS"] ?? 10_000);
const NOW = Timestamp.ofMillis(Date.UTC(2026, 10, 16, 12));

function pinned(role: Party["role"], ...devices: Device[]): Pins {
  return devices.reduce((pins, { id, keys }) => pins.add(newPin({ role, id }, keys.bundle, NOW)), new Pins());
}

/** Two exchanges between the same ends and one with others, so that the gateway has something to swap. */
async function world() {
  const random = new Random(99);
  const [robot, other, ada, bob] = [
    await newDevice(random, "robot"),
    await newDevice(random, "other"),
    await newDevice(random, "ada"),
    await newDevice(random, "bob"),
  ];
  const draft = (text: string) => ({
    artifactType: "command.review" as const,
    payload: JSON.stringify({ schema: "org.proto.payload", version: 1, argv: ["sh", "-c", text], cwd: "/" }),
    repoRef: "repo:x",
    repoName: "acme/widgets",
    expiresAt: NOW.plus(3_600_000),
    session: "s1",
    supersedes: `before ${text}`,
  });
  const choice: Choice = { outcome: "reject", scope: "once", validUntil: NOW.plus(3_600_000), words: { reason: "no" } };
  const both = pinned("approver", ada, bob);
  const builds = [
    await buildRequest(draft("one"), robot, both, NOW),
    await buildRequest(draft("two"), robot, both, NOW),
    await buildRequest(draft("three"), other, both, NOW),
  ] as const;
  const pushed = builds.map(({ envelope }) => envelope.replace('"artifact.submit"', '"approval.request"'));
  const request = await openRequest(parseEnvelope(pushed[0] ?? ""), ada, pinned("enforcer", robot), NOW);
  const sent = await decide(request, choice, ada, NOW);
  const second = await openRequest(parseEnvelope(pushed[1] ?? ""), ada, pinned("enforcer", robot), NOW);
  const approved = await decide(second, { ...choice, outcome: "approve" }, ada, NOW);
  const receipt = await signReceipt(robot.keys.signer, {
    requestId: request.requestId,
    use: 1,
    decisionHash: sent.hash,
    decisionNonce: sent.nonce,
    effectHash: "00".repeat(32),
    enforcerId: "robot",
    at: `${NOW}`,
    outcome: { outcome: "applied", exitStatus: 0 },
  });
  const snapshot = await sealSnapshot(
    {
      sessionId: receiptSession(request.requestId, 1),
      snapshotId: "receipt",
      snapshotType: "summary",
      payload: receipt,
    },
    robot,
    [{ id: "ada", bundle: ada.keys.bundle }],
    NOW,
  );
  const prompt = await buildPrompt(
    { target: "agentChat", content: { text: "go on" }, expiresAt: NOW.plus(60_000) },
    ada,
    "robot",
    pinned("enforcer", robot),
    NOW,
  );
  const claim = vouchFor({ approverId: "ada", bundle: bob.keys.bundle, label: "phone", until: NOW.plus(86_400_000) });
  const statement = await signStatement(ada.keys, { enforcerId: "robot", by: "ada", at: NOW }, claim);
  return { robot, other, ada, bob, builds, pushed, request, sent, approved, receipt, snapshot, prompt, statement };
}

type World = Awaited<ReturnType<typeof world>>;

/** What a changed text opens or verifies as, in one text that says all that counts; throws if it does not. */
type Target = { name: string; honest: (w: World) => string; open: (w: World, text: string) => Promise<string> };

const form = (source: string): string => hex(canonical(parseObject(source)));

const TARGETS: Target[] = [
  {
    name: "request",
    honest: (w) => w.pushed[0] ?? "",
    open: async (w, text) => {
      const opened = await openRequest(parseEnvelope(text), w.ada, pinned("enforcer", w.robot, w.other), NOW);
      const { requestId, enforcerId, artifactHash, payload, repoName, session, expiresAt, artifactType, supersedes } =
        opened;
      return JSON.stringify([
        requestId,
        enforcerId,
        artifactHash,
        form(payload.source),
        repoName,
        session,
        expiresAt,
        artifactType,
        supersedes,
      ]);
    },
  },
  {
    name: "decision",
    honest: (w) => w.sent.source,
    open: async (w, text) => {
      const { outcome, scope, validUntil, words, nonce, hash } = await verifyDecision(
        text,
        w.builds[0],
        w.robot,
        pinned("approver", w.ada, w.bob),
        NOW,
      );
      return JSON.stringify([outcome, scope, validUntil, words, nonce, hash]);
    },
  },
  {
    name: "receipt",
    honest: (w) => w.snapshot,
    open: async (w, text) => {
      const opened = await openSnapshot(parseObject(text), w.ada, pinned("enforcer", w.robot, w.other), NOW);
      const receipt = openReceipt(opened, w.sent, 1);
      return JSON.stringify([opened.sessionId, opened.snapshotId, form(receipt.source)]);
    },
  },
  {
    name: "prompt",
    honest: (w) => w.prompt.envelope,
    open: async (w, text) => {
      const { requestId, approverId, content, target, sessionId } = await openPrompt(
        parseEnvelope(text),
        w.robot,
        pinned("approver", w.ada, w.bob),
        NOW,
      );
      return JSON.stringify([requestId, approverId, content, target, sessionId]);
    },
  },
  {
    name: "statement",
    honest: (w) => w.statement.source,
    open: async (w, text) => {
      const statement = parseStatement(text);
      const said = verifyStatement(statement, w.ada.keys.bundle, "robot", NOW);
      return JSON.stringify([form(statement.source), said.type]);
    },
  },
];

/** Every string in a JSON value, with a way to put another one in its place. */
function strings(value: unknown, found: { text: string; put: (text: unknown) => void }[] = []) {
  if (typeof value !== "object" || value === null) return found;
  for (const [name, member] of Object.entries(value)) {
    const put = (text: unknown): void => {
      (value as Record<string, unknown>)[name] = text;
    };
    if (typeof member === "string") found.push({ text: member, put });
    else strings(member, found);
  }
  return found;
}

/** A change that a gateway could make. */
function change(random: Random, honest: string, others: readonly string[]): string {
  const kind = random.below(6);
  if (kind === 0) {
    const at = random.below(honest.length);
    return honest.slice(0, at) + random.of([...'Aa09-_"{}[],: .\\']) + honest.slice(at + 1);
  }
  const value = JSON.parse(honest) as unknown;
  const places = strings(value);
  const place = random.of(places);
  const bytes = base64url.decode(place.text);
  if (kind === 1 && bytes !== undefined && bytes.length > 0) {
    const at = random.below(bytes.length);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
    place.put(base64url.encode(bytes));
  } else if (kind === 2) {
    place.put(random.of(places).text);
  } else if (kind === 3) {
    place.put(random.of(strings(JSON.parse(random.of(others)))).text);
  } else if (kind === 4) {
    place.put(
      random.of([
        null,
        1,
        true,
        [],
        {},
        "",
        `${place.text} `,
        place.text.slice(1),
        place.text.toUpperCase(),
        "robot",
        "other",
        "ada",
        "bob",
      ]),
    );
  } else {
    const at = random.below(honest.length);
    return honest.slice(0, at) + honest.slice(at + 1 + random.below(3));
  }
  return JSON.stringify(value);
}

describe("a gateway that lies", () => {
  test(`changes ${ROUNDS} messages, and nothing opens or verifies as something else`, {
    timeout: 600_000,
  }, async () => {
    const w = await world();
    const others = [...w.pushed, w.sent.source, w.approved.source, w.snapshot, w.prompt.envelope, w.statement.source];
    const counts = { refused: 0, unchanged: 0 };
    const truths = new Map<string, Set<string>>();
    for (const { name, honest, open } of TARGETS) truths.set(name, new Set([await open(w, honest(w))]));
    // Whole messages of other exchanges are honest too, where they are delivered as what they are.
    for (const text of w.pushed.slice(1)) truths.get("request")?.add(await (TARGETS[0] as Target).open(w, text));
    for (let round = 0; round < ROUNDS; round += 1) {
      const random = new Random(round + 1);
      const target = random.of(TARGETS);
      const text = random.isOneIn(50) ? random.of(others) : change(random, target.honest(w), others);
      try {
        const read = await target.open(w, text);
        expect(truths.get(target.name), `round ${round}: ${target.name} ${text}`).toContain(read);
        counts.unchanged += 1;
      } catch (error) {
        // Only errors that say what is wrong and what to do; never one that nobody has thought of.
        if (!(error instanceof CountersignError)) throw error;
        expect(error.next.length > 10 && error.message.length > 5, `round ${round}: ${error}`).toBe(true);
        counts.refused += 1;
      }
    }
    expect(counts.refused + counts.unchanged).toBe(ROUNDS);
    expect(counts.refused).toBeGreaterThan(ROUNDS * 0.8);
  });

  test("replaces keys while others pair, and is noticed each time", async () => {
    const w = await world();
    const evil = await newDevice(new Random(1234), "evil");
    const transcript = {
      enforcerId: "robot",
      enforcer: w.robot.keys.bundle,
      approverId: "ada",
      approver: w.ada.keys.bundle,
      nonce: "n1",
    };
    const secret = new Random(5).bytes(16);
    const link = {
      gateway: "https://gw",
      code: "BCDF-GHJK",
      enforcerId: "robot",
      fingerprint: w.robot.keys.fingerprint,
      secret,
    };
    const half = { signing: evil.keys.bundle.signing, agreement: w.robot.keys.bundle.agreement };
    for (const lie of [{ enforcer: evil.keys.bundle }, { enforcer: half }, { enforcerId: "other" }]) {
      expect(() => answerLink({ ...transcript, ...lie }, link)).toThrow("not those of the machine");
    }
    const { bundle } = answerLink(transcript, link);
    const forged = { ...evil.keys.bundle, proof: bundle.proof };
    verifyLinkAnswer({ ...transcript, approver: bundle }, secret);
    for (const lie of [
      { approver: forged },
      { approver: w.ada.keys.bundle },
      { approver: bundle, nonce: "n2" },
      { approver: bundle, approverId: "bob" },
    ]) {
      expect(() => verifyLinkAnswer({ ...transcript, ...lie }, secret)).toThrow("did not see the link");
    }
    for (let round = 0; round < 200; round += 1) {
      const answer = answerTyped(transcript);
      expect(typedDigits({ ...transcript, approver: answer.bundle })).toBe(answer.digits);
      const lies = [
        { enforcer: evil.keys.bundle },
        { enforcerId: "robot2" },
        { nonce: "n2" },
        { approver: { ...answer.bundle, proof: new Random(round).bytes(32) } },
      ];
      for (const lie of lies)
        expect(typedDigits({ ...transcript, approver: answer.bundle, ...lie })).not.toBe(answer.digits);
    }
    expect(() => typedDigits(transcript)).toThrow();
  });

  test("changes bundles of keys, and none is read as another device", () => {
    const keys = formatBundle({
      signing: Uint8Array.from(Buffer.from("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "hex")),
      agreement: Uint8Array.from(Buffer.from(`09${"00".repeat(31)}`, "hex")),
    });
    let read = 0;
    for (let round = 0; round < 2_000; round += 1) {
      const random = new Random(round);
      const at = random.below(keys.length);
      const changed = keys.slice(0, at) + random.of([..."ABab09-_.=v12"]) + keys.slice(at + 1);
      try {
        const bundle = parseBundle(changed);
        expect(formatBundle(bundle)).toBe(changed);
        read += 1;
      } catch (error) {
        if (!(error instanceof CountersignError)) throw error;
      }
    }
    expect(read).toBeGreaterThan(0);
  });

  test("sends text that misleads, which is data and nothing else", async () => {
    const w = await world();
    const nasty = "<img src=x onerror=alert(1)>\u202e\u0000javascript:alert(1)";
    const actions = [{ id: nasty, caption: nasty, style: "danger", decision: "approve" } as const];
    const payload = JSON.stringify({ [nasty]: nasty, __proto__x: 1, constructor: { prototype: nasty } });
    const draft = {
      artifactType: "plan.review",
      payload,
      repoRef: nasty,
      repoName: nasty,
      expiresAt: NOW.plus(60_000),
      // An id has no control characters; what else misleads may be in it.
      session: nasty.replace("\u0000", ""),
      actions,
    } as const;
    const built = await buildRequest(draft, w.robot, pinned("approver", w.ada), NOW);
    const opened = await openRequest(
      parseEnvelope(built.envelope.replace("artifact.submit", "approval.request")),
      w.ada,
      pinned("enforcer", w.robot),
      NOW,
    );
    expect(opened).toMatchObject({ repoName: nasty, session: draft.session, actions });
    expect(opened.payload.source).toBe(payload);
  });
});
