// The signed decision of a person: read, signed and verified. No I/O.

import * as base64url from "./base64url.ts";
import { canonicalWithout } from "./canonical.ts";
import type { Signer } from "./device.ts";
import { verifyStrict } from "./ed25519.ts";
import { UnsafeNumberError } from "./errors.ts";
import { hashOf } from "./hash.ts";
import { type JsonObject, parseObject } from "./json.ts";
import { id, Members, nonEmpty, object, sha256, text, time, word } from "./members.ts";
import type { Timestamp } from "./timestamp.ts";

/** Whether what was asked for may be done. */
export type Outcome = "approve" | "reject";

/** What an approval covers (docs/grants.md). */
export type Scope = "once" | "timebox" | "session";

/** A decision of the protocol, with its text. Nothing in it is proven before its signature is verified. */
export interface Decision {
  readonly requestId: string;
  readonly artifactHash: string;
  readonly repoRef: string;
  readonly decision: Outcome;
  readonly scope: Scope;
  readonly expiresAt: Timestamp;
  readonly nonce: string;
  readonly signerKeyId: string;
  readonly signature: string;
  readonly policyHints: JsonObject | undefined;
  /** The decision as it was written. */
  readonly source: string;
}

/** Reads exactly a decision. Throws a `JsonError` or a `FormatError`. */
export function readDecision(json: string): Decision {
  const members = new Members(parseObject(json));
  members.required("artifactHashAlg", word(["SHA-256"]));
  members.required("sigAlg", word(["Ed25519"]));
  const decision = {
    requestId: members.required("requestId", id),
    artifactHash: members.required("artifactHash", sha256),
    repoRef: members.required("repoRef", text),
    decision: members.required("decision", word(["approve", "reject"])),
    scope: members.required("scope", word(["once", "timebox", "session"])),
    expiresAt: members.required("expiresAt", time),
    nonce: members.required("nonce", text),
    signerKeyId: members.required("signerKeyId", text),
    signature: members.required("signature", nonEmpty),
    policyHints: members.optional("policyHints", object),
    source: members.object.source,
  };
  members.close();
  return decision;
}

/** Signs a decision without `signature`, and returns the whole of it as JSON text. */
export async function signDecision(signer: Signer, unsigned: Readonly<Record<string, unknown>>): Promise<string> {
  const message = canonicalWithout(parseObject(JSON.stringify(unsigned)), "signature");
  return JSON.stringify({ ...unsigned, signature: base64url.encode(await signer.sign(message)) });
}

/** Whether this Ed25519 key has signed the decision, over the canonical form of its text. */
export function verifyDecisionSignature(decision: Decision, publicKey: Uint8Array): boolean {
  const signature = base64url.decodeExactly(decision.signature, 64);
  if (signature === undefined) return false;
  try {
    return verifyStrict(publicKey, canonicalWithout(parseObject(decision.source), "signature"), signature);
  } catch (error) {
    // Such a text has no canonical form that everybody agrees on.
    if (error instanceof UnsafeNumberError) return false;
    throw error;
  }
}

/** The hash by which a receipt names a decision: of all of it, in canonical form. */
export function decisionHash(decision: Decision): string {
  return hashOf(parseObject(decision.source));
}
