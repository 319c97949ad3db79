// Every file of vectors/, and every case in it.

import { describe, expect, test } from "vitest";

import { type ArtifactType, effectHash } from "../src/protocol/artifact.ts";
import * as base64url from "../src/protocol/base64url.ts";
import { fromUtf8 } from "../src/protocol/bytes.ts";
import { canonical, canonicalWithout } from "../src/protocol/canonical.ts";
import { readDecision, signDecision, verifyDecisionSignature } from "../src/protocol/decision.ts";
import { keysFromSecret } from "../src/protocol/device.ts";
import { publicKeyOf } from "../src/protocol/ed25519.ts";
import { FormatError, HashError, UnsafeNumberError } from "../src/protocol/errors.ts";
import { checkHash, hashWithout, sha256Hex } from "../src/protocol/hash.ts";
import { parse, parseObject } from "../src/protocol/json.ts";
import {
  BundleKeysError,
  fingerprint,
  fingerprintDigits,
  formatBundle,
  parseBundle,
  shortFingerprint,
} from "../src/protocol/keys.ts";
import { formatPairingLink, LinkError, parsePairingLink } from "../src/protocol/link.ts";
import { formatLock, LockFault, lockChallenge, parseLock, verifyAssertion, verifyLock } from "../src/protocol/lock.ts";
import { answerLink, PairingError, type Transcript, typedDigits, verifyLinkAnswer } from "../src/protocol/pairing.ts";
import { EFFECT_PHRASES } from "../src/protocol/payload/effect.ts";
import { readPayload } from "../src/protocol/payload/index.ts";
import { foundIn, sentenceOf } from "../src/protocol/payload/sentence.ts";
import {
  formatRecoveryCode,
  parseRecoveryCode,
  RecoveryCodeError,
  recoveryKeys,
  recoverySecret,
} from "../src/protocol/recovery.ts";
import { type Context, open, parseSealed, SealError } from "../src/protocol/seal.ts";
import {
  parseStatement,
  StatementError,
  signStatement,
  statementChallenge,
  verifyStatement,
} from "../src/protocol/statement.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { type Case, cases, document, files, known, textOf } from "./vectors.ts";

function bytes(text: string) {
  const decoded = base64url.decode(text);
  if (decoded === undefined) throw new Error(`not base64url: ${text}`);
  return decoded;
}

function time(text: string): Timestamp {
  const read = Timestamp.parse(text);
  if (read === undefined) throw new Error(`not a time: ${text}`);
  return read;
}

/** How many cases each list has that this file runs: a case more or less is noticed. */
const ran = new Map<string, number>();

/** Runs every case of a list, and counts them. */
function every(file: string, list: string, run: (tested: Case) => Promise<void> | void): void {
  test(`${file}.json, ${list}`, async () => {
    const all = cases(document(file), list);
    for (const tested of all) {
      await run(tested);
      ran.set(`${file}.${list}`, (ran.get(`${file}.${list}`) ?? 0) + 1);
    }
    expect(ran.get(`${file}.${list}`)).toBe(all.length);
  });
}

describe("the vectors", () => {
  test("are the files and lists that are run here, and no others", () => {
    const lists = Object.fromEntries(files().map((name) => [name, Object.keys(document(name)).sort()]));
    expect(lists).toEqual({
      calls: ["about", "calls"],
      canonical: ["about", "cases"],
      decisions: ["about", "cases", "publicKey", "seed"],
      hashes: ["about", "cases"],
      lock: ["about", "assertions", "challenges", "locks", "statements"],
      pairing: ["about", "bundles", "keys", "links", "recoveryCodes", "statements", "transcripts"],
      seal: ["about", "cases", "keys"],
      sentences: ["about", "cases"],
    });
  });

  every("canonical", "cases", (tested) => {
    known(tested, ["name", "input", "canonical", "sha256"], ["note"]);
    const form = canonical(parse(textOf(tested, "input")));
    expect(fromUtf8(form), textOf(tested, "name")).toBe(tested["canonical"]);
    expect(sha256Hex(form)).toBe(tested["sha256"]);
  });

  every("hashes", "cases", (tested) => {
    known(tested, ["name", "object", "field", "canonical", "sha256"]);
    const field = textOf(tested, "field");
    const object = parseObject(JSON.stringify(tested["object"]));
    expect(fromUtf8(canonicalWithout(object, field))).toBe(tested["canonical"]);
    expect(hashWithout(object, field)).toBe(tested["sha256"]);
    checkHash(object, field);
    const changed = { ...(tested["object"] as object), metadata: { added: true } };
    expect(() => checkHash(parseObject(JSON.stringify(changed)), field)).toThrow(HashError);
    const unsafe = JSON.stringify({ ...changed, metadata: { integer: 0 } }).replace(
      '"integer":0',
      '"integer":9007199254740992',
    );
    expect(() => checkHash(parseObject(unsafe), field)).toThrow(UnsafeNumberError);
  });

  every("decisions", "cases", async (tested) => {
    known(tested, ["name", "decision", "verifies"], ["canonical"]);
    const all = document("decisions");
    const [key, seed] = [bytes(textOf(all, "publicKey")), bytes(textOf(all, "seed"))];
    expect(publicKeyOf(seed)).toEqual(key);
    const decision = readDecision(JSON.stringify(tested["decision"]));
    expect(verifyDecisionSignature(decision, key), textOf(tested, "name")).toBe(tested["verifies"]);
    if (tested["canonical"] !== undefined) {
      expect(fromUtf8(canonicalWithout(parseObject(decision.source), "signature"))).toBe(tested["canonical"]);
    }
    if (tested["verifies"] === true) {
      // Ed25519 is deterministic: signing again makes the same signature.
      const { signer } = await keysFromSecret(Uint8Array.from([...seed, ...new Uint8Array(31), 64]));
      const { signature: _, ...unsigned } = tested["decision"] as Record<string, unknown>;
      expect(readDecision(await signDecision(signer, unsigned)).signature).toBe(decision.signature);
    }
  });

  for (const file of ["seal", "pairing"]) {
    test(`${file}.json, keys`, async () => {
      const entries = Object.values(document(file)["keys"] as Record<string, Case>);
      expect(entries.length).toBeGreaterThan(0);
      for (const entry of entries) {
        known(entry, ["secret", "bundle", "fingerprint"]);
        const keys = await keysFromSecret(bytes(textOf(entry, "secret")));
        expect([formatBundle(keys.bundle), keys.fingerprint]).toEqual([entry["bundle"], entry["fingerprint"]]);
      }
    });
  }

  every("seal", "cases", async (tested) => {
    known(tested, ["name", "context", "devices", "kind", "sealed", "sender"], ["plaintext", "refused", "textual"]);
    const context = { kind: tested["kind"], ...(tested["context"] as object) } as Context;
    const devices = tested["devices"] as Case[];
    expect(devices.length).toBeGreaterThan(0);
    for (const device of devices) {
      known(device, ["id", "secret"]);
      const keys = await keysFromSecret(bytes(textOf(device, "secret")));
      const result = await outcome(SealError, async () => {
        const opening = { keys, ownId: textOf(device, "id"), sender: parseBundle(textOf(tested, "sender")) };
        return base64url.encode(await open(parseSealed(textOf(tested, "sealed")), opening, context));
      });
      expect(result, textOf(tested, "name")).toEqual(wanted(tested, tested["plaintext"]));
    }
  });

  every("pairing", "bundles", async (tested) => {
    known(tested, ["name", "bundle"], ["refused", "fingerprint", "short", "digits"]);
    const result = await outcome(BundleKeysError, () => {
      const bundle = parseBundle(textOf(tested, "bundle"));
      expect(formatBundle(bundle)).toBe(tested["bundle"]);
      return [fingerprint(bundle), shortFingerprint(bundle), fingerprintDigits(bundle)];
    });
    if (tested["refused"] === undefined) {
      expect(result).toEqual([tested["fingerprint"], tested["short"], tested["digits"]]);
    } else {
      expect([tested["refused"], result], textOf(tested, "name")).toEqual([
        "unknown-keys",
        { refused: expect.any(String) },
      ]);
    }
  });

  every("pairing", "links", async (tested) => {
    known(tested, ["name", "text"], ["refused", "written", "gateway", "code", "enforcerId", "fingerprint", "secret"]);
    const result = await outcome(LinkError, () => {
      const { secret, ...link } = parsePairingLink(textOf(tested, "text"));
      return { ...link, secret: base64url.encode(secret), written: formatPairingLink({ ...link, secret }) };
    });
    const { name: _, text: __, ...rest } = tested;
    expect(result, textOf(tested, "name")).toEqual(rest);
  });

  every("lock", "locks", (tested) => {
    known(tested, ["name", "text"], ["refused", "algorithm", "credentialId", "publicKey", "rpId", "origin"]);
    const [name, text] = [textOf(tested, "name"), textOf(tested, "text")];
    if (tested["refused"] !== undefined) {
      expect(tested["refused"]).toBe("not-a-lock");
      expect(() => parseLock(text), name).toThrow(FormatError);
      return;
    }
    const { algorithm, credentialId, publicKey, rpId, origin } = parseLock(text);
    const encoded = { credentialId: base64url.encode(credentialId), publicKey: base64url.encode(publicKey) };
    expect({ name, text, algorithm, ...encoded, rpId, origin }).toEqual(tested);
    expect(formatLock(parseLock(text))).toBe(text);
  });

  every("lock", "challenges", (tested) => {
    known(tested, ["name", "decision", "challenge"]);
    const challenge = lockChallenge(parseObject(JSON.stringify(tested["decision"])));
    expect(base64url.encode(challenge), textOf(tested, "name")).toBe(tested["challenge"]);
  });

  every("lock", "assertions", async (tested) => {
    known(tested, ["name", "lock", "decision"], ["refused", "count"]);
    const decision = parseObject(JSON.stringify(tested["decision"]));
    const verified = await verifyLock(parseLock(textOf(tested, "lock")), decision).catch((error: unknown) => {
      if (error instanceof LockFault) return error.reason;
      throw error;
    });
    expect(verified, textOf(tested, "name")).toBe(tested["refused"] ?? tested["count"]);
  });

  every("lock", "statements", async (tested) => {
    known(tested, ["name", "statement", "challenge"], ["lock", "refused"]);
    const source = JSON.stringify(tested["statement"]);
    const [{ confirmed }, challenge] = [parseStatement(source), statementChallenge(parseObject(source))];
    expect(base64url.encode(challenge), textOf(tested, "name")).toBe(tested["challenge"]);
    if (confirmed === undefined) return;
    const lock = parseLock(textOf(tested, "lock"));
    const refused = await verifyAssertion(lock, confirmed, challenge).then(
      () => undefined,
      (error: unknown) => (error as LockFault).reason,
    );
    expect(refused, textOf(tested, "name")).toBe(tested["refused"]);
  });

  every("pairing", "transcripts", (tested) => {
    const members = ["answer", "approver", "approverId", "enforcer", "enforcerId", "nonce", "proof", "secret", "typed"];
    known(tested, ["name", ...members], ["lock"]);
    const lock = tested["lock"] === undefined ? undefined : parseLock(textOf(tested, "lock"));
    const enforcer = parseBundle(textOf(tested, "enforcer"));
    const transcript: Transcript = {
      enforcerId: textOf(tested, "enforcerId"),
      enforcer,
      approverId: textOf(tested, "approverId"),
      approver: parseBundle(textOf(tested, "approver")),
      nonce: textOf(tested, "nonce"),
      lock,
    };
    const secret = bytes(textOf(tested, "secret"));
    const link = {
      gateway: "https://gw",
      code: "BCDF-GHJK",
      enforcerId: transcript.enforcerId,
      fingerprint: fingerprint(enforcer),
      secret,
    };
    const answer = answerLink(transcript, link);
    expect(base64url.encode(answer.bundle.proof ?? new Uint8Array())).toBe(tested["proof"]);
    expect(formatBundle(answer.bundle)).toBe(tested["answer"]);
    verifyLinkAnswer({ ...transcript, approver: answer.bundle }, secret);
    const without = { ...transcript, approver: answer.bundle, lock: undefined };
    if (lock !== undefined) expect(() => verifyLinkAnswer(without, secret)).toThrow(PairingError);
    expect(() => verifyLinkAnswer({ ...transcript, approver: answer.bundle, nonce: "another" }, secret)).toThrow(
      PairingError,
    );
    const typed = tested["typed"] as Case[];
    expect(typed.length).toBeGreaterThan(0);
    for (const { answer: typedAnswer, fresh, digits, ...others } of typed) {
      expect(others).toEqual({});
      const approver = parseBundle(String(typedAnswer));
      expect(base64url.encode(approver.proof ?? new Uint8Array())).toBe(fresh);
      expect(typedDigits({ ...transcript, approver })).toBe(digits);
    }
  });

  every("pairing", "statements", async (tested) => {
    known(tested, ["name", "statement", "signer", "enforcerId", "now"], ["refused", "textual"]);
    const [signer, enforcerId] = [textOf(tested, "signer"), textOf(tested, "enforcerId")];
    const result = await outcome(StatementError, () => {
      const statement = parseStatement(textOf(tested, "statement"));
      verifyStatement(statement, parseBundle(signer), enforcerId, time(textOf(tested, "now")));
      return "verified";
    });
    expect(result, textOf(tested, "name")).toEqual(wanted(tested, "verified"));
    if (tested["refused"] !== undefined) return;
    const statement = parseStatement(textOf(tested, "statement"));
    const entries = Object.values(document("pairing")["keys"] as Record<string, Case>);
    const own = entries.find((entry) => entry["bundle"] === signer);
    const keys = await keysFromSecret(bytes(textOf(own ?? {}, "secret")));
    const issue = {
      enforcerId: statement.enforcerId,
      by: statement.by,
      at: time(statement.issuedAt),
      id: statement.id,
    };
    const { confirmed } = statement;
    const lock = confirmed === undefined ? undefined : async () => confirmed;
    expect((await signStatement(keys, issue, statement.claim, lock)).signature).toBe(statement.signature);
  });

  every("pairing", "recoveryCodes", async (tested) => {
    known(tested, ["text"], ["name", "refused", "written", "secret", "bundle", "fingerprint"]);
    const result = await outcome(RecoveryCodeError, async () => {
      const seed = parseRecoveryCode(textOf(tested, "text"));
      const keys = await recoveryKeys(seed);
      const [written, secret] = [formatRecoveryCode(seed), base64url.encode(recoverySecret(seed))];
      return { written, secret, bundle: formatBundle(keys.bundle), fingerprint: keys.fingerprint };
    });
    const { name: _, text: __, ...rest } = tested;
    expect(result).toEqual(rest);
  });
});

describe("calls.json", () => {
  test.each(cases(document("calls"), "calls"))("$name", (tested) => {
    known(tested, ["name", "artifactType", "repoName", "payload", "effectHash", "isRaw", "notShown"]);
    const type = textOf(tested, "artifactType") as ArtifactType;
    const object = parseObject(JSON.stringify(tested["payload"]));
    const payload = readPayload(type, object);
    expect(effectHash(type, object, tested["repoName"] as string)).toBe(tested["effectHash"]);
    expect(payload.kind === "raw").toBe(tested["isRaw"]);
    expect([...payload.rest].sort()).toEqual(tested["notShown"]);
  });
});

describe("sentences.json", () => {
  test.each(cases(document("sentences"), "cases"))("$name", (tested) => {
    known(tested, ["name", "artifactType", "payload", "sentence", "found"]);
    const payload = readPayload(
      textOf(tested, "artifactType") as ArtifactType,
      parseObject(JSON.stringify(tested["payload"])),
    );
    expect(sentenceOf(payload)).toBe(tested["sentence"]);
    expect(foundIn(payload)).toEqual(tested["found"]);
  });

  test("every row of the table has a case, with and without what it is on", () => {
    const written = cases(document("sentences"), "cases").map(({ name }) => name);
    for (const kind of Object.keys(EFFECT_PHRASES))
      for (const form of ["alone", "on something"]) expect(written).toContain(`${kind} ${form}`);
  });
});

function wanted(tested: Case, accepted: unknown): unknown {
  return tested["refused"] === undefined ? accepted : { refused: tested["refused"] };
}

/** What an action returns, or the reason why it is refused, by an error of this class and no other. */
async function outcome(
  type: { new (...args: never[]): Error & { code: string; reason?: string } },
  action: () => unknown,
): Promise<unknown> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof type) return { refused: error.reason ?? error.code };
    throw error;
  }
}
