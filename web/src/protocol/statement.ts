// Statements that one device signs about another: that it may approve too, or must not any more (docs/pairing.md).

import * as base64url from "./base64url.ts";
import { type Bytes, concat, random, utf8 } from "./bytes.ts";
import { canonicalWithout, canonicalWithoutPaths } from "./canonical.ts";
import type { DeviceKeys } from "./device.ts";
import { verifyStrict } from "./ed25519.ts";
import { type Explained, ReasonError } from "./errors.ts";
import { sha256, sha256Hex } from "./hash.ts";
import { type JsonObject, type JsonValue, parse, parseObject } from "./json.ts";
import { formatBundle, isFingerprint, type KeyBundle, parseBundle, withoutProof } from "./keys.ts";
import {
  type Assertion,
  assertion,
  formatLock,
  type LockKey,
  parseLock,
  verifyAssertion,
  writeAssertion,
} from "./lock.ts";
import { flag, Members, one, text, word } from "./members.ts";
import { Timestamp } from "./timestamp.ts";

/** What is said of a device, as it is written. */
export type Claim =
  | {
      type: "vouch";
      approverId: string;
      bundle: string;
      label: string;
      until: string;
      recovery: boolean;
      lock?: string | undefined;
    }
  | { type: "revoke"; fingerprint: string };

/** A claim with its signature. Nothing of it counts before {@link verifyStatement}. */
export interface Statement {
  readonly enforcerId: string;
  readonly id: string;
  readonly issuedAt: string;
  readonly by: string;
  readonly byFingerprint: string;
  readonly claim: Claim;
  /** What the lock of the device that signs says of exactly this statement; absent if it was not asked. */
  readonly confirmed?: Assertion | undefined;
  readonly signature: string;
  /** The statement as JSON text. */
  readonly source: string;
}

type StatementReason = "malformed" | "signature" | "other-enforcer" | "time" | "not-confirmed";
const STATEMENT_REASONS: Explained<StatementReason> = {
  malformed: ["the statement is not in a format that is known here", "Copy all of it again, or update this program."],
  signature: [
    "the signature of the statement does not verify",
    "Do not use it. Ask the device that signed it for another one.",
  ],
  "other-enforcer": ["the statement is for another machine", "Ask for one that is for this machine."],
  time: ["the statement is not valid at this time", "Check the clock of this device, or ask for a new statement."],
  "not-confirmed": [
    "whoever vouches has a device lock, and signed without it",
    "Sign it again on that device's page, or pair the new device instead.",
  ],
};

/** Why a statement is not accepted. */
export class StatementError extends ReasonError<StatementReason> {
  readonly code = "statement";

  constructor(reason: StatementReason) {
    super(reason, STATEMENT_REASONS);
  }
}

/** The longest time for which a device can be vouched for, from the signing on: a year. */
export const MAX_VOUCH_MILLIS = 365 * 86_400_000;

const SKEW_MILLIS = 60_000;

/** Vouches for a device: a further one of one's own, a teammate's first, or the keys of a recovery code. */
export function vouchFor(newcomer: {
  approverId: string;
  bundle: KeyBundle;
  label: string;
  until: Timestamp;
  recovery?: boolean;
  lock?: LockKey | undefined;
}): Claim {
  const { approverId, label, until, recovery = false, lock } = newcomer;
  return {
    type: "vouch",
    approverId,
    bundle: formatBundle(withoutProof(newcomer.bundle)),
    label,
    until: `${until}`,
    recovery,
    ...(lock === undefined ? {} : { lock: formatLock(lock) }),
  };
}

/** Revokes a device, for good. */
export function revoke(fingerprint: string): Claim {
  return { type: "revoke", fingerprint };
}

/**
 * Signs a claim with the keys of a device, or of a recovery code, for one enforcer; with what the lock of this device signs for
 * exactly this statement, if there is a lock to ask.
 */
export async function signStatement(
  keys: DeviceKeys,
  issue: { enforcerId: string; by: string; at: Timestamp; id?: string },
  claim: Claim,
  lock?: (challenge: Bytes) => Promise<Assertion>,
): Promise<Statement> {
  const plain = {
    v: 1,
    enforcerId: issue.enforcerId,
    id: issue.id ?? base64url.encode(random(16)),
    issuedAt: `${issue.at}`,
    by: issue.by,
    byFingerprint: keys.fingerprint,
    claim,
  };
  const confirmed = await lock?.(statementChallenge(parseObject(JSON.stringify(plain))));
  const unsigned = confirmed === undefined ? plain : { ...plain, confirmed: writeAssertion(confirmed) };
  const signature = await keys.signer.sign(signedBytes(parseObject(JSON.stringify(unsigned))));
  return parseStatement(JSON.stringify({ ...unsigned, signature: base64url.encode(signature) }));
}

function signedBytes(statement: JsonObject): Bytes {
  return concat(utf8("countersign statement v1\0"), canonicalWithout(statement, "signature"));
}

/** What the lock of the device that signs is asked about a statement: all that it says but the two signatures. */
export function statementChallenge(statement: JsonObject): Bytes {
  const form = canonicalWithoutPaths(statement, [["signature"], ["confirmed"]]);
  return sha256(utf8("countersign lock statement v1\0"), form);
}

/** Reads a statement; nothing of it is verified. Throws {@link StatementError}. */
export function parseStatement(json: string): Statement {
  try {
    return readStatement(parse(json));
  } catch {
    throw new StatementError("malformed");
  }
}

/** As {@link parseStatement}, from a value within a message. */
export function readStatement(value: JsonValue, at = ""): Statement {
  const members = new Members(value, at);
  members.required("v", one);
  const statement = {
    enforcerId: members.required("enforcerId", text),
    id: members.required("id", text),
    issuedAt: members.required("issuedAt", text),
    by: members.required("by", text),
    byFingerprint: members.required("byFingerprint", text),
    claim: members.required("claim", readClaim),
    confirmed: members.optional("confirmed", assertion),
    signature: members.required("signature", text),
    source: members.object.source,
  };
  members.close();
  return statement;
}

function readClaim(value: JsonValue, at: string): Claim {
  const members = new Members(value, at);
  const type = members.required("type", word(["vouch", "revoke"]));
  const claim: Claim =
    type === "revoke"
      ? { type, fingerprint: members.required("fingerprint", text) }
      : {
          type,
          approverId: members.required("approverId", text),
          bundle: members.required("bundle", text),
          label: members.required("label", text),
          until: members.required("until", text),
          recovery: members.required("recovery", flag),
          lock: members.optional("lock", text),
        };
  members.close();
  return claim;
}

/** Identifies a statement, however it is spelled: SHA-256 of what its signature covers. */
export function statementDigest(statement: Statement): string {
  return sha256Hex(signedBytes(parseObject(statement.source)));
}

/** A claim that was verified, in types. */
export type Said =
  | {
      type: "vouch";
      approverId: string;
      bundle: KeyBundle;
      label: string;
      until: Timestamp;
      recovery: boolean;
      lock: LockKey | undefined;
    }
  | { type: "revoke"; fingerprint: string };

/**
 * Verifies a statement under a key, for one enforcer, and returns what it claims. Whoever has pins also checks that the key
 * is that of the approver `by` and of `byFingerprint`. Throws {@link StatementError}.
 */
export function verifyStatement(statement: Statement, signer: KeyBundle, enforcerId: string, now: Timestamp): Said {
  const signature = base64url.decodeExactly(statement.signature, 64);
  const message = signedBytes(parseObject(statement.source));
  if (signature === undefined || !verifyStrict(signer.signing, message, signature))
    throw new StatementError("signature");
  if (statement.enforcerId !== enforcerId) throw new StatementError("other-enforcer");
  const said = claimInTypes(statement.claim);
  const issuedAt = Timestamp.parse(statement.issuedAt);
  if (issuedAt === undefined) throw new StatementError("malformed");
  if (said.type === "vouch") {
    const isTooLong = issuedAt.plus(MAX_VOUCH_MILLIS).isBefore(said.until);
    const isInTime = now.isBefore(said.until) && !isTooLong && !now.plus(SKEW_MILLIS).isBefore(issuedAt);
    if (!isInTime) throw new StatementError("time");
  }
  return said;
}

/**
 * Checks that the lock which is pinned for the device of the signer has confirmed a voucher: otherwise its keys alone would bring
 * further devices. A revocation needs none, and what an unknown lock says counts for nothing. Throws {@link StatementError} or a
 * `LockFault`.
 */
export async function verifyConfirmed(
  { claim, confirmed, source }: Statement,
  pinned: LockKey | undefined,
): Promise<void> {
  if (pinned === undefined || claim.type === "revoke") return;
  if (confirmed === undefined) throw new StatementError("not-confirmed");
  await verifyAssertion(pinned, confirmed, statementChallenge(parseObject(source)));
}

function claimInTypes(claim: Claim): Said {
  if (claim.type === "revoke") {
    if (isFingerprint(claim.fingerprint)) return claim;
    throw new StatementError("malformed");
  }
  const until = Timestamp.parse(claim.until);
  try {
    const bundle = parseBundle(claim.bundle);
    const lock = claim.lock === undefined ? undefined : parseLock(claim.lock);
    // A code on paper has no lock.
    const isWhole = bundle.proof === undefined && !(claim.recovery && lock !== undefined);
    if (until !== undefined && isWhole) return { ...claim, bundle, until, lock };
  } catch {
    throw new StatementError("malformed");
  }
  throw new StatementError("malformed");
}
