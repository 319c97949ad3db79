// Statements that one device signs about another: that it may approve too, or must not any more (docs/pairing.md).

import * as base64url from "./base64url.ts";
import { type Bytes, concat, random, utf8 } from "./bytes.ts";
import { canonicalWithout } from "./canonical.ts";
import type { DeviceKeys } from "./device.ts";
import { verifyStrict } from "./ed25519.ts";
import { type Explained, ReasonError } from "./errors.ts";
import { sha256Hex } from "./hash.ts";
import { type JsonObject, type JsonValue, parse, parseObject } from "./json.ts";
import { formatBundle, isFingerprint, type KeyBundle, parseBundle, withoutProof } from "./keys.ts";
import { flag, Members, one, text, word } from "./members.ts";
import { Timestamp } from "./timestamp.ts";

/** What is said of a device, as it is written. */
export type Claim =
  | { type: "vouch"; approverId: string; bundle: string; label: string; until: string; recovery: boolean }
  | { type: "revoke"; fingerprint: string };

/** A claim with its signature. Nothing of it counts before {@link verifyStatement}. */
export interface Statement {
  readonly enforcerId: string;
  readonly id: string;
  readonly issuedAt: string;
  readonly by: string;
  readonly byFingerprint: string;
  readonly claim: Claim;
  readonly signature: string;
  /** The statement as JSON text. */
  readonly source: string;
}

type StatementReason = "malformed" | "signature" | "other-enforcer" | "time";
const STATEMENT_REASONS: Explained<StatementReason> = {
  malformed: ["the statement is not in a format that is known here", "Copy all of it again, or update this program."],
  signature: [
    "the signature of the statement does not verify",
    "Do not use it. Ask the device that signed it for another one.",
  ],
  "other-enforcer": ["the statement is for another machine", "Ask for one that is for this machine."],
  time: ["the statement is not valid at this time", "Check the clock of this device, or ask for a new statement."],
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
}): Claim {
  const { approverId, label, until, recovery = false } = newcomer;
  return {
    type: "vouch",
    approverId,
    bundle: formatBundle(withoutProof(newcomer.bundle)),
    label,
    until: `${until}`,
    recovery,
  };
}

/** Revokes a device, for good. */
export function revoke(fingerprint: string): Claim {
  return { type: "revoke", fingerprint };
}

/** Signs a claim with the keys of a device, or of a recovery code, for one enforcer. */
export async function signStatement(
  keys: DeviceKeys,
  issue: { enforcerId: string; by: string; at: Timestamp; id?: string },
  claim: Claim,
): Promise<Statement> {
  const unsigned = {
    v: 1,
    enforcerId: issue.enforcerId,
    id: issue.id ?? base64url.encode(random(16)),
    issuedAt: `${issue.at}`,
    by: issue.by,
    byFingerprint: keys.fingerprint,
    claim,
  };
  const signature = await keys.signer.sign(signedBytes(parseObject(JSON.stringify(unsigned))));
  return parseStatement(JSON.stringify({ ...unsigned, signature: base64url.encode(signature) }));
}

function signedBytes(statement: JsonObject): Bytes {
  return concat(utf8("countersign statement v1\0"), canonicalWithout(statement, "signature"));
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
  | { type: "vouch"; approverId: string; bundle: KeyBundle; label: string; until: Timestamp; recovery: boolean }
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

function claimInTypes(claim: Claim): Said {
  if (claim.type === "revoke") {
    if (isFingerprint(claim.fingerprint)) return claim;
    throw new StatementError("malformed");
  }
  const until = Timestamp.parse(claim.until);
  try {
    const bundle = parseBundle(claim.bundle);
    if (until !== undefined && bundle.proof === undefined) return { ...claim, bundle, until };
  } catch {
    throw new StatementError("malformed");
  }
  throw new StatementError("malformed");
}
