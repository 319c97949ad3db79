// A decision: made and signed by an approver; verified by the enforcer that sent the request. No I/O.

import * as base64url from "./base64url.ts";
import { random, utf8 } from "./bytes.ts";
import {
  type Decision,
  decisionHash,
  type Outcome,
  readDecision,
  type Scope,
  signDecision,
  verifyDecisionSignature,
} from "./decision.ts";
import { type Explained, ReasonError } from "./errors.ts";
import type { Pins } from "./pins.ts";
import type { BuiltRequest, Identity, OpenedRequest } from "./request.ts";
import { open, readSealed, SealError, seal } from "./seal.ts";
import type { Timestamp } from "./timestamp.ts";
import { readWords, type Words, writeWords } from "./words.ts";

const SKEW_MILLIS = 60_000;

/** What an approver decides. */
export interface Choice {
  readonly outcome: Outcome;
  readonly scope: Scope;
  /** Until when the enforcer may act on it. */
  readonly validUntil: Timestamp;
  readonly words: Words;
  /** 16 random bytes in base64url that are used once; a new one if it is absent. */
  readonly nonce?: string;
}

/** A decision that was signed, by which its receipt is recognised. */
export interface SentDecision {
  readonly requestId: string;
  readonly enforcerId: string;
  readonly nonce: string;
  /** The hash of the canonical decision. */
  readonly hash: string;
  /** The decision as JSON text. */
  readonly source: string;
}

type ChoiceReason = "expired" | "no-session";
const CHOICE_REASONS: Explained<ChoiceReason> = {
  expired: ["the request has expired", "Nothing was done. Ask the machine to send it again."],
  "no-session": [
    "the request belongs to no session, so it can't be approved for one",
    "Approve it once, or for a time.",
  ],
};

/** A decision can't be made. */
export class ChoiceError extends ReasonError<ChoiceReason> {
  readonly code = "choice";

  constructor(reason: ChoiceReason) {
    super(reason, CHOICE_REASONS);
  }
}

/** A nonce for a decision. */
export function newNonce(): string {
  return base64url.encode(random(16));
}

/** Signs a decision about an opened request. Throws {@link ChoiceError} or a `SealError`. */
export async function decide(
  request: OpenedRequest,
  choice: Choice,
  approver: Identity,
  now: Timestamp,
): Promise<SentDecision> {
  if (!now.isBefore(request.expiresAt)) throw new ChoiceError("expired");
  if (choice.scope === "session" && request.session === undefined) throw new ChoiceError("no-session");
  const nonce = choice.nonce ?? newNonce();
  const { requestId, artifactHash, repoRef, enforcerId } = request;
  const context = { kind: "hints", requestId, artifactHash, approverId: approver.id, nonce } as const;
  const recipient = { id: enforcerId, bundle: request.sentBy.bundle };
  const sealed = await seal(approver.keys, context, utf8(writeWords(choice.words)), [recipient]);
  const policyHints = {
    sealed: JSON.parse(sealed) as unknown,
    ...(choice.scope === "session" ? { sessionId: request.session } : {}),
  };
  const source = await signDecision(approver.keys.signer, {
    requestId,
    artifactHashAlg: "SHA-256",
    artifactHash,
    repoRef,
    decision: choice.outcome,
    scope: choice.scope,
    expiresAt: `${choice.validUntil}`,
    nonce,
    sigAlg: "Ed25519",
    signerKeyId: approver.keys.fingerprint,
    policyHints,
  });
  return sentDecision(source, enforcerId);
}

/** Names a decision that was made for a request of this enforcer. */
export function sentDecision(source: string, enforcerId: string): SentDecision {
  const decision = readDecision(source);
  return { requestId: decision.requestId, enforcerId, nonce: decision.nonce, hash: decisionHash(decision), source };
}

/** The check of docs/trust.md that a decision failed. Each means: do nothing, and say which. */
export type RejectedReason =
  | "malformed"
  | "other-request"
  | "other-content"
  | "other-repository"
  | "unknown-signer"
  | "signature"
  | "too-late"
  | "no-session"
  | "words";

const NOT_DONE = "What was asked for is not done. Ask again.";
const REJECTED_REASONS: Explained<RejectedReason> = {
  malformed: ["the decision is not in a format that is known here", NOT_DONE],
  "other-request": ["the decision is about another request", NOT_DONE],
  "other-content": ["the decision is about other content than was asked for", NOT_DONE],
  "other-repository": ["the decision is about another repository", NOT_DONE],
  "unknown-signer": [
    "the decision is signed by a device that is not paired, or not any more",
    "Pair the device, and ask again.",
  ],
  signature: ["the signature of the decision does not verify", NOT_DONE],
  "too-late": ["the decision came too late", NOT_DONE],
  "no-session": ["the decision covers a session, and does not name that of the request", NOT_DONE],
  words: ["what the decision says can't be read", NOT_DONE],
};

/** A decision failed a check. */
export class RejectedError extends ReasonError<RejectedReason> {
  readonly code = "rejected";

  constructor(reason: RejectedReason, cause?: unknown) {
    super(reason, REJECTED_REASONS);
    if (cause !== undefined) this.cause = cause;
  }
}

/** A decision that passed every check but one: whether its nonce was used before is for the caller's journal. */
export interface VerifiedDecision {
  readonly outcome: Outcome;
  readonly scope: Scope;
  readonly validUntil: Timestamp;
  readonly approverId: string;
  /** The fingerprint of the device that signed. */
  readonly device: string;
  readonly words: Words;
  readonly session: string | undefined;
  readonly nonce: string;
  readonly hash: string;
}

/** Checks a decision about a request, in the order of docs/trust.md. Throws {@link RejectedError}. */
export async function verifyDecision(
  json: string,
  request: BuiltRequest,
  enforcer: Identity,
  pins: Pins,
  now: Timestamp,
): Promise<VerifiedDecision> {
  const decision = readOrReject(json);
  const reject = (reason: RejectedReason, isWrong: boolean): void => {
    if (isWrong) throw new RejectedError(reason);
  };
  reject("other-request", decision.requestId !== request.requestId);
  reject("other-content", decision.artifactHash !== request.artifactHash);
  reject("other-repository", decision.repoRef !== request.repoRef);
  const pin = pins.get(decision.signerKeyId);
  if (pin === undefined || pin.party.role !== "approver" || !pins.isActive(pin.fingerprint, now)) {
    throw new RejectedError("unknown-signer");
  }
  reject("signature", !verifyDecisionSignature(decision, pin.bundle.signing));
  reject("too-late", !now.isBefore(decision.expiresAt.plus(SKEW_MILLIS)));
  const hint = decision.policyHints?.members.get("sessionId");
  const session = typeof hint === "string" ? hint : undefined;
  const isSession = decision.scope === "session";
  reject("no-session", isSession && (session === undefined || session !== request.session));
  const opening = { keys: enforcer.keys, ownId: enforcer.id, sender: pin.bundle };
  const words = await openWords(decision, pin.party.id, opening);
  return {
    outcome: decision.decision,
    scope: decision.scope,
    validUntil: decision.expiresAt,
    approverId: pin.party.id,
    device: pin.fingerprint,
    words,
    session: isSession ? session : undefined,
    nonce: decision.nonce,
    hash: decisionHash(decision),
  };
}

function readOrReject(json: string): Decision {
  try {
    return readDecision(json);
  } catch (cause) {
    throw new RejectedError("malformed", cause);
  }
}

/** What the decision says beyond approve or reject; nothing if it has no sealed words. */
async function openWords(decision: Decision, approverId: string, opening: Parameters<typeof open>[1]): Promise<Words> {
  const sealed = decision.policyHints?.members.get("sealed");
  if (sealed === undefined) return {};
  const { requestId, artifactHash, nonce } = decision;
  try {
    const content = await open(readSealed(sealed), opening, {
      kind: "hints",
      requestId,
      artifactHash,
      approverId,
      nonce,
    });
    return readWords(content);
  } catch (cause) {
    throw new RejectedError("words", cause instanceof SealError ? cause : new SealError("malformed"));
  }
}
