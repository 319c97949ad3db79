// Random exchanges with the Rust implementation at the other end: sealed by one and opened by the other, decided by one and
// verified by the other, both ways. `COUNTERSIGN_EXCHANGES` is the number for each way.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { ARTIFACT_TYPES } from "../../src/protocol/artifact.ts";
import * as base64url from "../../src/protocol/base64url.ts";
import { parseEnvelope } from "../../src/protocol/envelope.ts";
import { formatBundle } from "../../src/protocol/keys.ts";
import { newPin, type Party, Pins } from "../../src/protocol/pins.ts";
import { buildPrompt, openPrompt, TARGETS } from "../../src/protocol/prompt.ts";
import { type Choice, decide, RejectedError, verifyDecision } from "../../src/protocol/reply.ts";
import { type BuiltRequest, buildRequest, OpenError, openRequest } from "../../src/protocol/request.ts";
import { type Context, open, parseSealed, SealError, seal } from "../../src/protocol/seal.ts";
import { Timestamp } from "../../src/protocol/timestamp.ts";
import { type Device, newDevice, Random } from "../random.ts";
import { Rust } from "./rust.ts";

const COUNT = Number(process.env["COUNTERSIGN_EXCHANGES"] ?? 500);
const NOW = at("2026-11-16T12:00:00Z");
let rust: Rust;
/** Making keys takes longer than using them, so exchanges choose from these. */
let enforcers: Device[];
let approvers: Device[];

beforeAll(async () => {
  rust = new Rust();
  const random = new Random(0);
  enforcers = await Promise.all(Array.from({ length: 64 }, () => newDevice(random, random.id())));
  approvers = await Promise.all(Array.from({ length: 64 }, () => newDevice(random, random.id())));
});
afterAll(() => rust.stop());

function at(text: string): Timestamp {
  const time = Timestamp.parse(text);
  if (time === undefined) throw new Error(text);
  return time;
}

const entry = ({ id, keys }: Device) => ({ id, bundle: formatBundle(keys.bundle) });

function pinned(role: Party["role"], ...devices: Device[]): Pins {
  return devices.reduce((pins, { id, keys }) => pins.add(newPin({ role, id }, keys.bundle, NOW)), new Pins());
}

/** What the gateway makes of a submission. */
const pushed = (envelope: string): string => envelope.replace('"artifact.submit"', '"approval.request"');

function draft(random: Random) {
  const expiresAt = NOW.plus(1_000 * (1 + random.below(100_000)) + random.below(1_000));
  const actions = Array.from({ length: random.below(4) }, (_, number) => ({
    id: `${number}${random.id()}`,
    caption: random.id(),
    style: random.of(["primary", "secondary", "danger"] as const),
    decision: random.of(["approve", "reject"] as const),
  }));
  return {
    artifactType: random.of(ARTIFACT_TYPES),
    payload: JSON.stringify({ value: random.json(4), text: random.text(200) }),
    repoName: random.text(),
    expiresAt,
    ...(random.isOneIn(2) ? { session: random.id() } : {}),
    actions,
  };
}

function choice(random: Random, hasSession: boolean): Choice {
  const words = {
    ...(random.isOneIn(2) ? { reason: random.text(100) } : {}),
    ...(random.isOneIn(2) ? { shown: random.text() } : {}),
    ...(random.isOneIn(3) ? { action: random.text(10) } : {}),
    ...(random.isOneIn(4) ? { pattern: { argv: ["cargo", "test", "*"] } } : {}),
  };
  return {
    outcome: random.of(["approve", "reject"] as const),
    scope: random.of(hasSession ? (["once", "timebox", "session"] as const) : (["once", "timebox"] as const)),
    validUntil: NOW.plus(random.below(10_000_000)),
    words,
  };
}

/** Runs `count` cases, a few at a time, so that both sides work. */
async function each(count: number, run: (random: Random, number: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let number = next++; number < count; number = next++) await run(new Random(number + 1), number);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}

describe(`${COUNT} exchanges each way`, () => {
  test("Rust asks, TypeScript answers", { timeout: 1_800_000 }, async () => {
    let verified = 0;
    await each(COUNT, async (random, number) => {
      const [robot, ada] = [random.of(enforcers), random.of(approvers)];
      const other = random.of(approvers.filter((device) => device !== ada));
      const wanted = draft(random);
      const people = [ada, other].map(entry);
      const line = { ...wanted, secret: robot.secret, enforcerId: robot.id, approvers: people, now: NOW };
      const built = await rust.ask("request", line);
      const request = await openRequest(parseEnvelope(pushed(built.envelope)), ada, pinned("enforcer", robot), NOW);
      expect(request, `exchange ${number}`).toMatchObject({
        requestId: built.requestId,
        artifactHash: built.artifactHash,
        artifactType: wanted.artifactType,
        repoRef: built.repoRef,
        repoName: wanted.repoName,
        session: wanted.session,
        actions: wanted.actions,
      });
      expect(JSON.parse(request.payload.source)).toEqual(JSON.parse(wanted.payload));
      const chosen = choice(random, wanted.session !== undefined);
      const sent = await decide(request, chosen, ada, NOW);
      const { artifact, envelope } = built;
      const checked = { secret: robot.secret, enforcerId: robot.id, approvers: people, artifact, envelope, now: NOW };
      expect(await rust.ask("verify", { ...checked, decision: sent.source }), `exchange ${number}`).toEqual({
        outcome: chosen.outcome,
        scope: chosen.scope,
        validUntil: `${chosen.validUntil}`,
        approverId: ada.id,
        words: chosen.words,
        session: chosen.scope === "session" ? wanted.session : null,
        nonce: sent.nonce,
        hash: sent.hash,
      });
      verified += 1;
    });
    expect(verified).toBe(COUNT);
  });

  test("TypeScript asks, Rust answers", { timeout: 1_800_000 }, async () => {
    let verified = 0;
    await each(COUNT, async (random, number) => {
      const [robot, ada] = [random.of(enforcers), random.of(approvers)];
      const { actions, ...rest } = draft(random);
      const wanted = { ...rest, ...(actions.length === 0 ? {} : { actions }), repoRef: random.text() };
      const built = await buildRequest(wanted, robot, pinned("approver", ada), NOW);
      const line = {
        secret: ada.secret,
        approverId: ada.id,
        enforcers: [entry(robot)],
        envelope: pushed(built.envelope),
        now: NOW,
      };
      const opened = await rust.ask("open", line);
      expect(opened, `exchange ${number}`).toEqual({
        requestId: built.requestId,
        enforcerId: robot.id,
        artifactType: wanted.artifactType,
        artifactHash: built.artifactHash,
        repoRef: wanted.repoRef,
        repoName: wanted.repoName,
        session: wanted.session ?? null,
        createdAt: `${NOW}`,
        expiresAt: `${wanted.expiresAt}`,
        payload: wanted.payload,
        actions,
      });
      const { outcome, scope, validUntil, words } = choice(random, wanted.session !== undefined);
      const { decision } = await rust.ask("decide", { ...line, outcome, scope, validUntil, words });
      const read = await verifyDecision(decision, built, robot, pinned("approver", ada), NOW);
      expect(read, `exchange ${number}`).toMatchObject({
        outcome,
        scope,
        approverId: ada.id,
        device: ada.keys.fingerprint,
        words,
      });
      expect(read.validUntil.equals(validUntil)).toBe(true);
      verified += 1;
    });
    expect(verified).toBe(COUNT);
  });

  test("contents of every kind, sealed by one and opened by the other", { timeout: 1_800_000 }, async () => {
    const contexts: Record<Context["kind"], readonly string[]> = {
      artifact: ["requestId", "artifactHash", "enforcerId", "expiresAt"],
      prompt: ["requestId", "promptHash", "approverId", "target"],
      snapshot: ["sessionId", "snapshotId", "snapshotHash", "enforcerId"],
      hints: ["requestId", "artifactHash", "approverId", "nonce"],
    };
    await each(Math.ceil(COUNT / 2), async (random, number) => {
      const kind = random.of(Object.keys(contexts) as Context["kind"][]);
      const members = Object.fromEntries(contexts[kind].map((name) => [name, random.text()]));
      const context = { kind, ...members } as Context;
      const [sender, recipient] = [random.of(enforcers), random.of(approvers)];
      const content = random.bytes(random.of([0, 1, 15, 16, 17, random.below(3_000)]));
      const line = { kind, context: members, secret: sender.secret, content: base64url.encode(content) };
      const byRust = JSON.stringify(await rust.ask("seal", { ...line, recipients: [entry(recipient)] }));
      const opening = { keys: recipient.keys, ownId: recipient.id, sender: sender.keys.bundle };
      expect(await open(parseSealed(byRust), opening, context), `content ${number}`).toEqual(content);
      const sealed = await seal(sender.keys, context, content, [{ id: recipient.id, bundle: recipient.keys.bundle }]);
      const { id, secret } = recipient;
      const byUs = {
        kind,
        context: members,
        sender: formatBundle(sender.keys.bundle),
        devices: [{ id, secret }],
        sealed,
      };
      expect(await rust.ask("unseal", byUs), `content ${number}`).toEqual([base64url.encode(content)]);
      // Both refuse the same thing for the same reason.
      const broken = mutate(random, byRust);
      const ours = await openText(broken, opening, context).then(base64url.encode, refusal);
      const theirs = await rust.ask("unseal", { ...byUs, sealed: broken });
      expect(theirs, `${number}: ${broken}`).toEqual([ours]);
    });
  });

  test("prompts, both ways", { timeout: 1_800_000 }, async () => {
    await each(Math.ceil(COUNT / 10), async (random) => {
      const [robot, ada] = [random.of(enforcers), random.of(approvers)];
      const [target, text, expiresAt] = [random.of(TARGETS), `${random.text()}!`, NOW.plus(60_000)];
      const session = random.isOneIn(2) ? random.id() : undefined;
      const line = {
        approverId: ada.id,
        enforcerId: robot.id,
        approvers: [entry(ada)],
        enforcers: [entry(robot)],
        now: NOW,
      };
      const built = await rust.ask("prompt", { ...line, secret: ada.secret, target, text, session, expiresAt });
      const read = await openPrompt(parseEnvelope(built.envelope), robot, pinned("approver", ada), NOW);
      expect(read).toMatchObject({ approverId: ada.id, target, content: { text }, sessionId: session });
      const prompt = { target, content: { text }, expiresAt, ...(session === undefined ? {} : { sessionId: session }) };
      const ours = await buildPrompt(prompt, ada, robot.id, pinned("enforcer", robot), NOW);
      const theirs = await rust.ask("read-prompt", { ...line, secret: robot.secret, envelope: ours.envelope });
      expect(theirs).toEqual({
        approverId: ada.id,
        target,
        said: text,
        session: session ?? null,
        expiresAt: `${expiresAt}`,
      });
      const stop = { target: "other", content: { stop: text }, expiresAt, sessionId: random.id() } as const;
      const stopped = await buildPrompt(stop, ada, robot.id, pinned("enforcer", robot), NOW);
      const heard = await rust.ask("read-prompt", { ...line, secret: robot.secret, envelope: stopped.envelope });
      expect(heard).toMatchObject({ said: { stop: true, words: text.trim() }, session: stop.sessionId });
    });
  });

  test("changed messages are refused by both", { timeout: 1_800_000 }, async () => {
    let refused = 0;
    await each(Math.ceil(COUNT / 4), async (random, number) => {
      const [robot, ada] = [random.of(enforcers), random.of(approvers)];
      const built = await buildRequest({ ...draft(random), repoRef: "repo:x" }, robot, pinned("approver", ada), NOW);
      const envelope = mutate(random, pushed(built.envelope));
      const line = { secret: ada.secret, approverId: ada.id, enforcers: [entry(robot)], envelope, now: NOW };
      const theirs = await rust.ask("open", line);
      const ours = await openChanged(envelope, ada, pinned("enforcer", robot));
      expect(
        ours.isOpened,
        `${number}: ours ${JSON.stringify(ours)}, Rust ${JSON.stringify(theirs)}, ${envelope}`,
      ).toBe(theirs.refused === undefined);
      if (!ours.isOpened) refused += 1;
      else expect(ours.artifactHash).toBe(built.artifactHash);
      const request = await openRequest(parseEnvelope(pushed(built.envelope)), ada, pinned("enforcer", robot), NOW);
      const sent = await decide(request, choice(random, false), ada, NOW);
      await bothReject(mutate(random, sent.source), built, robot, ada);
    });
    expect(refused).toBeGreaterThan(0);
  });

  async function bothReject(decision: string, built: BuiltRequest, robot: Device, ada: Device): Promise<void> {
    const { artifact, envelope } = built;
    const line = {
      secret: robot.secret,
      enforcerId: robot.id,
      approvers: [entry(ada)],
      artifact,
      envelope,
      decision,
      now: NOW,
    };
    const theirs = await rust.ask("verify", line);
    const ours = await verifyDecision(decision, built, robot, pinned("approver", ada), NOW).then(
      (verified) => verified.hash,
      (error: unknown) => (error instanceof RejectedError ? undefined : Promise.reject(error)),
    );
    expect(ours, `Rust: ${JSON.stringify(theirs)}, ${decision}`).toBe(theirs.hash);
  }
});

async function openChanged(
  envelope: string,
  approver: Device,
  pins: Pins,
): Promise<{ isOpened: boolean; artifactHash?: string }> {
  try {
    const { artifactHash } = await openRequest(parseEnvelope(envelope), approver, pins, NOW);
    return { isOpened: true, artifactHash };
  } catch (error) {
    const isRefusal =
      error instanceof OpenError || (error instanceof Error && ["JsonError", "FormatError"].includes(error.name));
    if (!isRefusal) throw error;
    return { isOpened: false };
  }
}

async function openText(json: string, opening: Parameters<typeof open>[1], context: Context) {
  return open(parseSealed(json), opening, context);
}

function refusal(error: unknown): { refused: string } {
  if (error instanceof SealError) return { refused: error.reason };
  throw error;
}

/** Changes one character of a JSON text to another one. */
function mutate(random: Random, json: string): string {
  const place = random.below(json.length);
  const other = random.of([...'AaZz09-_"{}[],: 1\\.']);
  // Half of a character can't be written as UTF-8, so it can't arrive either.
  return (json.slice(0, place) + other + json.slice(place + 1)).toWellFormed();
}
