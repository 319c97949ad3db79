// What the lock of a device signs is part of the decision, and of the voucher. A machine verifies it by what it has pinned.

import { beforeAll, describe, expect, test } from "vitest";

import * as base64url from "../src/protocol/base64url.ts";
import { type Bytes, concat, utf8 } from "../src/protocol/bytes.ts";
import { cardDigits, formatCard, parseCard } from "../src/protocol/card.ts";
import { readEnvelope } from "../src/protocol/envelope.ts";
import { sha256 } from "../src/protocol/hash.ts";
import { parse } from "../src/protocol/json.ts";
import { type Assertion, checkLock, type LockKey } from "../src/protocol/lock.ts";
import { newPin, Pins } from "../src/protocol/pins.ts";
import { decide, RejectedError, verifyDecision } from "../src/protocol/reply.ts";
import { buildRequest, openRequest } from "../src/protocol/request.ts";
import {
  parseStatement,
  revoke,
  signStatement,
  verifyConfirmed,
  verifyStatement,
  vouchFor,
} from "../src/protocol/statement.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { type Device, newDevice, Random } from "./random.ts";

const NOW = Timestamp.ofMillis(Date.parse("2026-11-15T12:00:00Z"));

/** A credential with its private key. */
class Phone {
  readonly #keys: CryptoKeyPair;
  readonly lock: LockKey;

  private constructor(keys: CryptoKeyPair, publicKey: Bytes) {
    this.#keys = keys;
    const [rpId, origin] = ["gw.example", "https://gw.example"];
    this.lock = checkLock({ algorithm: "EdDSA", credentialId: Uint8Array.of(1), publicKey, rpId, origin });
  }

  static async make(): Promise<Phone> {
    const keys = (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
    const raw = new Uint8Array(await crypto.subtle.exportKey("raw", keys.publicKey));
    return new Phone(keys, concat(Uint8Array.from(Buffer.from("302a300506032b6570032100", "hex")), raw));
  }

  readonly confirm = async (challenge: Bytes): Promise<Assertion> => {
    const asked = { type: "webauthn.get", challenge: base64url.encode(challenge), origin: this.lock.origin };
    const [clientDataJSON, site] = [utf8(JSON.stringify(asked)), sha256(utf8(this.lock.rpId))];
    const authenticatorData = concat(site, Uint8Array.of(5, 0, 0, 0, 1));
    const signed = concat(authenticatorData, sha256(clientDataJSON));
    const signature = new Uint8Array(await crypto.subtle.sign("Ed25519", this.#keys.privateKey, signed));
    return { credentialId: this.lock.credentialId, authenticatorData, clientDataJSON, signature };
  };
}

describe("a machine", () => {
  let ada: Device;
  let robot: Device;
  let phone: Phone;
  const random = new Random(7);

  beforeAll(async () => {
    [ada, robot, phone] = [await newDevice(random, "ada"), await newDevice(random, "robot"), await Phone.make()];
  });

  const payload = (effects: readonly object[]): string =>
    JSON.stringify({ schema: "org.proto.payload", version: 2, state: "examined", argv: ["x"], cwd: "/work", effects });

  /** What a machine makes of an approval; `needsPerson` is its rule. */
  async function approved(
    isPinned: boolean,
    lock: ((challenge: Bytes) => Promise<Assertion>) | undefined,
    { isDangerous = false, needsPerson = false },
  ): Promise<boolean> {
    const pin = newPin({ role: "approver", id: "ada" }, ada.keys.bundle, NOW);
    const pins = new Pins([isPinned ? { ...pin, lock: phone.lock } : pin]);
    const kept = Pins.parse(pins.toText());
    const draft = {
      artifactType: "command.review",
      payload: payload(isDangerous ? [{ effect: "deletes" }] : []),
      repoRef: "repo:x",
      repoName: "acme/shop",
      expiresAt: NOW.plus(600_000),
      needsPerson,
    } as const;
    const built = await buildRequest(draft, robot, kept, NOW);
    const envelope = readEnvelope(parse(built.envelope.replace("artifact.submit", "approval.request")), "");
    const machines = new Pins([newPin({ role: "enforcer", id: "robot" }, robot.keys.bundle, NOW)]);
    const opened = await openRequest(envelope, ada, machines, NOW);
    expect(opened.needsPerson).toBe(needsPerson);
    const choice = { outcome: "approve", scope: "once", validUntil: NOW.plus(60_000), words: {} } as const;
    const sent = await decide(opened, lock === undefined ? choice : { ...choice, lock }, ada, NOW);
    return (await verifyDecision(sent.source, built, robot, kept, NOW)).isVerified;
  }

  test("wants the lock that it has pinned for what is dangerous, and nothing more than before without one", async () => {
    expect(await approved(true, phone.confirm, { isDangerous: true })).toBe(true);
    expect(await approved(true, undefined, {})).toBe(false);
    await expect(approved(true, undefined, { isDangerous: true })).rejects.toMatchObject({ reason: "not-verified" });
    expect(await approved(false, undefined, { isDangerous: true })).toBe(false);
    expect(await approved(false, phone.confirm, { isDangerous: true })).toBe(false);
  });

  test("refuses another lock, an answer that was given before, and a device whose lock it does not know", async () => {
    const stranger = await Phone.make();
    await expect(approved(true, stranger.confirm, {})).rejects.toMatchObject({ reason: "lock" });
    let before: Assertion | undefined;
    await approved(true, async (challenge) => (before = await phone.confirm(challenge)), {});
    const replayed = approved(true, async () => before ?? phone.confirm(new Uint8Array(32)), {});
    await expect(replayed).rejects.toBeInstanceOf(RejectedError);
    expect(await approved(true, phone.confirm, { needsPerson: true })).toBe(true);
    await expect(approved(false, phone.confirm, { needsPerson: true })).rejects.toMatchObject({
      reason: "not-verified",
    });
  });

  test("is shown a card with the lock, whose digits are others", () => {
    const card = { id: "ada", bundle: ada.keys.bundle, lock: phone.lock };
    expect(parseCard("device", formatCard("device", card))).toEqual(card);
    expect(cardDigits(card)).not.toBe(cardDigits({ id: "ada", bundle: ada.keys.bundle }));
    expect(() => parseCard("machine", formatCard("machine", card))).toThrow();
  });

  test("takes no voucher of a device with a lock by its keys alone", async () => {
    const [tablet, stranger] = [await newDevice(random, "tablet"), await Phone.make()];
    const until = NOW.plus(86_400_000);
    const claim = vouchFor({ approverId: "ada", bundle: tablet.keys.bundle, label: "", until, lock: stranger.lock });
    const signed = (lock?: (challenge: Bytes) => Promise<Assertion>, said = claim) =>
      signStatement(ada.keys, { enforcerId: "robot", by: "ada", at: NOW }, said, lock);
    const good = await signed(phone.confirm);
    expect(verifyStatement(parseStatement(good.source), ada.keys.bundle, "robot", NOW).type).toBe("vouch");
    await verifyConfirmed(parseStatement(good.source), phone.lock);
    const keysAlone = await signed();
    await expect(verifyConfirmed(keysAlone, phone.lock)).rejects.toMatchObject({ reason: "not-confirmed" });
    const byThief = await signed(stranger.confirm);
    await expect(verifyConfirmed(byThief, phone.lock)).rejects.toMatchObject({ reason: "signature" });
    // What was confirmed is one statement, and a decision is none.
    const replayed = await signed(async () => good.confirmed ?? phone.confirm(new Uint8Array(32)));
    await expect(verifyConfirmed(replayed, phone.lock)).rejects.toMatchObject({ reason: "other-decision" });
    const stripped = JSON.parse(good.source) as Record<string, unknown>;
    delete stripped["confirmed"];
    const plain = parseStatement(JSON.stringify(stripped));
    expect(() => verifyStatement(plain, ada.keys.bundle, "robot", NOW)).toThrow("signature");
    // What is trusted less needs nobody, and a lock that is not pinned is none.
    await verifyConfirmed(await signed(undefined, revoke(tablet.keys.fingerprint)), phone.lock);
    await verifyConfirmed(keysAlone, undefined);
    await verifyConfirmed(byThief, undefined);
  });

  test("keeps the lock of a device that is paired again without one", async () => {
    const pin = newPin({ role: "approver", id: "ada" }, ada.keys.bundle, NOW);
    const known = new Pins().add({ ...pin, lock: phone.lock });
    expect(known.add(pin).get(pin.fingerprint)?.lock).toEqual(phone.lock);
    expect(known.add({ ...pin, lock: undefined }).get(pin.fingerprint)?.lock).toEqual(phone.lock);
    const other = await Phone.make();
    expect(known.add({ ...pin, lock: other.lock }).get(pin.fingerprint)?.lock).toEqual(other.lock);
  });
});
