// Whole exchanges between two ends of this library, and every check of them.

import { describe, expect, test } from "vitest";

import { effectHash, readArtifact } from "../src/protocol/artifact.ts";
import { BundleError, ownBundle, readBundle, verifyBundle } from "../src/protocol/bundle.ts";
import { hex, utf8 } from "../src/protocol/bytes.ts";
import { canonicalOf } from "../src/protocol/canonical.ts";
import { type Envelope, parseEnvelope, writeEnvelope } from "../src/protocol/envelope.ts";
import { hashWithout, sha256 } from "../src/protocol/hash.ts";
import { parseObject } from "../src/protocol/json.ts";
import { formatBundle } from "../src/protocol/keys.ts";
import { newPin, type Party, Pins } from "../src/protocol/pins.ts";
import { openReceipt, readReceipt, receiptSession, signReceipt } from "../src/protocol/receipt.ts";
import { type Choice, decide, verifyDecision } from "../src/protocol/reply.ts";
import { buildRequest, OpenError, openRequest } from "../src/protocol/request.ts";
import { seal } from "../src/protocol/seal.ts";
import { openSnapshot, sealSnapshot } from "../src/protocol/session.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { type Device, newDevice, Random } from "./random.ts";

const NOW = Timestamp.ofMillis(Date.UTC(2026, 10, 16, 12));
const LATER = NOW.plus(3_600_000);

function pinned(role: Party["role"], ...devices: Device[]): Pins {
  return devices.reduce((pins, { id, keys }) => pins.add(newPin({ role, id }, keys.bundle, NOW)), new Pins());
}

const random = new Random(42);
const [robot, ada] = [await newDevice(random, "robot"), await newDevice(random, "ada")];
const DRAFT = {
  artifactType: "command.review",
  payload: '{"argv": ["ls"]}',
  repoRef: "repo:x",
  repoName: "acme/widgets",
  expiresAt: LATER,
  session: "s1",
} as const;
const CHOICE: Choice = { outcome: "approve", scope: "once", validUntil: LATER, words: { reason: "fine" } };
const pushed = (envelope: string): Envelope =>
  parseEnvelope(envelope.replace('"artifact.submit"', '"approval.request"'));

/** A pushed request whose content is changed by `inside`, sealed for what the envelope says, whose body is changed by `outside`. */
async function request(inside: object, outside: object = {}, hash?: string): Promise<Envelope> {
  const unhashed = {
    requestId: "r",
    artifactType: "command.review",
    repoRef: "repo:x",
    createdAt: NOW,
    expiresAt: LATER,
    payload: { argv: ["ls"] },
    artifactHashAlg: "SHA-256",
    ...inside,
  };
  const artifactHash = hashWithout(parseObject(JSON.stringify(unhashed)), "artifactHash");
  const named = hash ?? artifactHash;
  const context = {
    kind: "artifact",
    requestId: "r",
    artifactHash: named,
    enforcerId: "robot",
    expiresAt: `${LATER}`,
  } as const;
  const ciphertext = await seal(robot.keys, context, utf8(JSON.stringify({ ...unhashed, artifactHash })), [
    { id: "ada", bundle: ada.keys.bundle },
  ]);
  const body = {
    artifactType: "command.review",
    artifactHash: named,
    expiresAt: LATER,
    ciphertext: JSON.parse(ciphertext),
    ...outside,
  };
  return parseEnvelope(
    writeEnvelope(
      { msgType: "approval.request", requestId: "r", createdAt: NOW, sender: { enforcerId: "robot" } },
      JSON.stringify(body),
    ),
  );
}

async function reasonOf(action: Promise<unknown>): Promise<string> {
  try {
    await action;
    return "accepted";
  } catch (error) {
    const hasDetail = error instanceof OpenError && ["differs", "unknown-sender", "seal"].includes(error.reason);
    if (hasDetail) return `${error.reason} ${error.message.split(": ").at(-1)}`;
    return (error as { reason?: string }).reason ?? String(error);
  }
}

describe("a request", () => {
  test("is refused for the check that it fails", async () => {
    const pins = pinned("enforcer", robot);
    const opened = (envelope: Envelope, with_ = pins) => reasonOf(openRequest(envelope, ada, with_, NOW));
    expect(await opened(await request({}))).toBe("accepted");
    expect(await opened(await request({}), pins.revoke(robot.keys.fingerprint, NOW))).toBe("unknown-sender robot");
    expect(await opened(await request({}), pinned("approver", robot))).toBe("unknown-sender robot");
    expect(await opened(await request({}, {}, "ab".repeat(32)))).toBe("differs artifactHash");
    expect(await opened(await request({ requestId: "r2" }))).toBe("differs requestId");
    expect(await opened(await request({ expiresAt: NOW.plus(9) }))).toBe("differs expiresAt");
    expect(await opened(await request({}, { artifactType: "plan.review" }))).toBe("differs artifactType");
    expect(await opened(await request({}, { expiresAt: NOW }))).toMatch(/^seal/);
    expect(await opened(await request({}, { ciphertext: undefined }))).toBe("not-sealed");
    expect(await opened(await request({}, { ciphertext: "text" }))).toBe("malformed");
    expect(await opened(await request({ more: 1 }))).toBe("malformed");
    expect(await opened({ ...(await request({})), msgType: "artifact.submit" })).toBe("malformed");
  });

  test("with buttons that are broken has Approve and Reject", async () => {
    const actions = (list: unknown) => request({ extensions: { "org.proto.requestedActions": list } });
    const good = { id: "a", caption: "A", decision: "approve" };
    const read = async (list: unknown) =>
      (await openRequest(await actions(list), ada, pinned("enforcer", robot), NOW)).actions;
    expect(await read({ version: 1, actions: [good] })).toEqual([{ ...good, style: "secondary" }]);
    for (const broken of [
      { version: 2, actions: [good] },
      { version: 1, actions: [] },
      { version: 1, actions: [good, { ...good, id: "A" }] },
      { version: 1, actions: [{ ...good, more: 1 }] },
      { version: 1, actions: Array(6).fill(good) },
      null,
      "x",
    ]) {
      expect(await read(broken)).toEqual([]);
    }
  });
});

describe("a decision", () => {
  test("is refused for the check that it fails", async () => {
    const built = await buildRequest(DRAFT, robot, pinned("approver", ada), NOW);
    const opened = await openRequest(pushed(built.envelope), ada, pinned("enforcer", robot), NOW);
    const sent = await decide(opened, CHOICE, ada, NOW);
    const pins = pinned("approver", ada);
    const verify = (json = sent.source, of = built, with_ = pins, now = NOW) =>
      reasonOf(verifyDecision(json, of, robot, with_, now));
    expect(await verify()).toBe("accepted");
    expect(await verify("{}")).toBe("malformed");
    expect(await verify(sent.source, { ...built, requestId: "x" })).toBe("other-request");
    expect(await verify(sent.source, { ...built, artifactHash: "x" })).toBe("other-content");
    expect(await verify(sent.source, { ...built, repoRef: "x" })).toBe("other-repository");
    expect(await verify(sent.source, built, pins.revoke(ada.keys.fingerprint, NOW))).toBe("unknown-signer");
    expect(await verify(sent.source, built, pinned("enforcer", ada))).toBe("unknown-signer");
    expect(await verify(sent.source.replace('"approve"', '"reject"'))).toBe("signature");
    expect(await verify(sent.source, built, pins, LATER.plus(60_000))).toBe("too-late");
    expect(await verify(sent.source, built, pins, LATER.plus(59_999))).toBe("accepted");
    const session = await decide(opened, { ...CHOICE, scope: "session" }, ada, NOW);
    expect(await verify(session.source)).toBe("accepted");
    expect(await verify(session.source, { ...built, session: "s2" })).toBe("no-session");
    const toOther = { ...opened, sentBy: newPin({ role: "enforcer", id: "robot" }, ada.keys.bundle, NOW) };
    expect(await verify((await decide(toOther, CHOICE, ada, NOW)).source)).toBe("words");
    expect(await reasonOf(decide(opened, CHOICE, ada, LATER))).toBe("expired");
    expect(await reasonOf(decide({ ...opened, session: undefined }, { ...CHOICE, scope: "session" }, ada, NOW))).toBe(
      "no-session",
    );
  });
});

describe("a receipt", () => {
  test("is for its decision, and a bundle proves what it can", async () => {
    const built = await buildRequest(DRAFT, robot, pinned("approver", ada), NOW);
    const opened = await openRequest(pushed(built.envelope), ada, pinned("enforcer", robot), NOW);
    const sent = await decide(opened, CHOICE, ada, NOW);
    const effect = effectHash("command.review", readArtifact(built.artifact).payload, "acme/widgets");
    expect(effect).toBe(
      hex(
        sha256(
          canonicalOf({ artifactType: "command.review", payload: { argv: ["ls"] }, repoName: "acme/widgets", v: 1 }),
        ),
      ),
    );
    const honest = {
      requestId: built.requestId,
      use: 1,
      decisionHash: sent.hash,
      decisionNonce: sent.nonce,
      effectHash: effect,
      enforcerId: "robot",
      at: `${NOW}`,
      outcome: { outcome: "applied", exitStatus: 0 },
    } as const;
    const arrived = async (receipt: object, signer = robot.keys.signer) => {
      const text = await signReceipt(signer, { ...honest, ...receipt });
      const draft = {
        sessionId: receiptSession(built.requestId, 1),
        snapshotId: "receipt",
        snapshotType: "summary",
        payload: text,
      } as const;
      const event = await sealSnapshot(draft, robot, [{ id: "ada", bundle: ada.keys.bundle }], NOW);
      return openReceipt(await openSnapshot(parseObject(event), ada, pinned("enforcer", robot), NOW), sent, 1);
    };
    expect((await arrived({})).outcome).toEqual({ outcome: "applied", exitStatus: 0 });
    for (const outcome of [{ outcome: "refused", reason: "no" }, { outcome: "drifted" }, { outcome: "tooLate" }]) {
      expect((await arrived({ outcome })).outcome).toEqual(outcome);
    }
    expect(await reasonOf(arrived({ outcome: { outcome: "perhaps" } }))).toBe("malformed");
    expect(await reasonOf(arrived({ enforcerId: "x" }))).toBe("other-enforcer");
    expect(await reasonOf(arrived({}, ada.keys.signer))).toBe("signature");
    expect(await reasonOf(arrived({ requestId: "x" }))).toBe("other-request");
    expect(await reasonOf(arrived({ use: 2 }))).toBe("other-use");
    expect(await reasonOf(arrived({ decisionNonce: "x" }))).toBe("other-decision");
    expect(await reasonOf(arrived({ decisionHash: "x" }))).toBe("other-decision");

    const receipt = await arrived({});
    const machine = pinned("enforcer", robot).all[0];
    if (machine === undefined) throw new Error("not pinned");
    const own = readBundle(ownBundle(sent.source, ada, machine, receipt));
    const report = await verifyBundle(own, pinned("enforcer", robot));
    expect(report).toMatchObject({ outcome: "approve", scope: "once", isConsistent: true });
    expect(report.findings).toMatchObject({
      artifact: "unproven",
      signature: "proven",
      approver: "unproven",
      receipt: "proven",
      decision: "proven",
      enforcer: "proven",
      done: "unproven",
    });
    const whole = { ...own, artifact: built.artifact };
    expect((await verifyBundle(whole)).findings).toMatchObject({
      artifact: "proven",
      about: "proven",
      effect: "proven",
      enforcer: "unproven",
    });
    // What wants a verified person, and was approved without one.
    expect((await verifyBundle(whole)).findings.person).toBeUndefined();
    const demanding = JSON.parse(built.artifact) as { extensions: Record<string, unknown> };
    demanding.extensions["org.countersign.verify"] = "person";
    const demanded = (await verifyBundle({ ...whole, artifact: JSON.stringify(demanding) })).findings;
    expect([demanded.person, demanded.lock]).toEqual(["wrong", undefined]);
    const changes = {
      artifact: { ...whole, artifact: built.artifact.replace("ls", "rm") },
      signature: { ...whole, signer: { ...own.signer, keys: formatBundle(robot.keys.bundle) } },
      receipt: {
        ...whole,
        receipt: readReceipt(parseObject(receipt.source.replace('"exitStatus":0', '"exitStatus":1'))),
      },
      effect: { ...whole, payload: "{}" },
    };
    for (const [claim, changed] of Object.entries(changes)) {
      expect((await verifyBundle(changed)).findings, claim).toMatchObject({ [claim]: "wrong" });
      expect((await verifyBundle(changed)).isConsistent).toBe(false);
    }
    expect((await verifyBundle(whole, pinned("approver", robot))).findings.enforcer).toBe("wrong");
    expect(() => readBundle("{}")).toThrow(BundleError);
    expect(() =>
      readBundle(ownBundle(sent.source, ada, machine, receipt).replace('"version":1', '"version":3')),
    ).toThrow("newer");
  });
});
