// A decision: made and signed by an approver; verified by the enforcer that sent the request. No I/O.

import { needsPerson, parseArtifact } from "./artifact.ts";
import * as base64url from "./base64url.ts";
import { type Bytes, random, utf8 } from "./bytes.ts";
import {
  type Decision,
  decisionHash,
  type Outcome,
  readDecision,
  type Scope,
  signDecision,
  verifyDecisionSignature,
} from "./decision.ts";
import { editables, isEdited, isEditOf } from "./edit.ts";
import { type Explained, ReasonError } from "./errors.ts";
import { parseObject } from "./json.ts";
import { type Assertion, hasAssertion, lockChallenge, verifyLock, writeAssertion } from "./lock.ts";
import { alarmOf } from "./payload/alarm.ts";
import { readPayload } from "./payload/index.ts";
import type { Pin, Pins } from "./pins.ts";
import type { BuiltRequest, Identity, OpenedRequest } from "./request.ts";
import { open, readSealed, SealError, seal } from "./seal.ts";
import type { Timestamp } from "./timestamp.ts";
import { editSize, MAX_EDIT, readWords, type Words, writeWords } from "./words.ts";

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
  /** Asks the lock of this device about exactly this decision; `undefined` if it has none. */
  readonly lock?: (challenge: Bytes) => Promise<Assertion | undefined>;
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

type ChoiceReason = "expired" | "no-session" | "edit" | "edited";
const CHOICE_REASONS: Explained<ChoiceReason> = {
  expired: ["the request has expired", "Nothing was done. Ask the machine to send it again."],
  "no-session": [
    "the request belongs to no session, so it can't be approved for one",
    "Approve it once, or for a time.",
  ],
  edit: ["the request can't be changed in this way", "Approve it or reject it as it is."],
  edited: ["a changed request can be approved once only", "Approve it once."],
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
  const { edit } = choice.words;
  if (edit !== undefined && !(isRefusal(choice) && isEditOf(edit, request.edits) && editSize(edit) <= MAX_EDIT))
    throw new ChoiceError("edit");
  if (request.isEdited && isMoreThanOnce(choice)) throw new ChoiceError("edited");
  const nonce = choice.nonce ?? newNonce();
  const { requestId, artifactHash, repoRef, enforcerId } = request;
  const context = { kind: "hints", requestId, artifactHash, approverId: approver.id, nonce } as const;
  const recipient = { id: enforcerId, bundle: request.sentBy.bundle };
  const sealed = await seal(approver.keys, context, utf8(writeWords(choice.words)), [recipient]);
  const policyHints = {
    sealed: JSON.parse(sealed) as unknown,
    ...(choice.scope === "session" ? { sessionId: request.session } : {}),
  };
  const unsigned = {
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
  };
  const assertion = await choice.lock?.(lockChallenge(parseObject(JSON.stringify(unsigned))));
  const hints = assertion === undefined ? policyHints : { ...policyHints, lock: writeAssertion(assertion) };
  const source = await signDecision(approver.keys.signer, { ...unsigned, policyHints: hints });
  return sentDecision(source, enforcerId);
}

/** Whether it is a rejection, as those with an edit are. */
function isRefusal({ outcome, scope }: Pick<Choice, "outcome" | "scope">): boolean {
  return outcome === "reject" && scope === "once";
}

/** Whether it approves more than the one call that was shown. */
function isMoreThanOnce({ outcome, scope, words }: Pick<Choice, "outcome" | "scope" | "words">): boolean {
  return outcome === "approve" && (scope !== "once" || words.pattern !== undefined);
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
  | "lock"
  | "not-verified"
  | "too-late"
  | "no-session"
  | "words"
  | "edit"
  | "edited";

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
  lock: ["the device lock does not confirm the decision", NOT_DONE],
  "not-verified": [
    "an approval of this needs the device lock, and the decision has none that this machine knows",
    "Pair the device again, with its lock, and ask again.",
  ],
  "too-late": ["the decision came too late", NOT_DONE],
  "no-session": ["the decision covers a session, and does not name that of the request", NOT_DONE],
  words: ["what the decision says can't be read", NOT_DONE],
  edit: ["the decision changes what could not be changed", NOT_DONE],
  edited: ["a changed request is approved once only, and the decision approves more", NOT_DONE],
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
  /** Whether the lock of the device has verified a person for this decision. */
  readonly isVerified: boolean;
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
  const isVerified = await verifyPerson(decision, pin);
  reject("not-verified", decision.decision === "approve" && !isVerified && isPersonNeeded(request, pin));
  reject("too-late", !now.isBefore(decision.expiresAt.plus(SKEW_MILLIS)));
  const hint = decision.policyHints?.members.get("sessionId");
  const session = typeof hint === "string" ? hint : undefined;
  const isSession = decision.scope === "session";
  reject("no-session", isSession && (session === undefined || session !== request.session));
  const opening = { keys: enforcer.keys, ownId: enforcer.id, sender: pin.bundle };
  const words = await openWords(decision, pin.party.id, opening);
  const artifact = parseArtifact(request.artifact);
  const said = { outcome: decision.decision, scope: decision.scope, words };
  const { edit } = words;
  reject("edit", edit !== undefined && !(isRefusal(said) && isEditOf(edit, editables(artifact))));
  reject("edited", isEdited(artifact) && isMoreThanOnce(said));
  return {
    outcome: decision.decision,
    scope: decision.scope,
    validUntil: decision.expiresAt,
    approverId: pin.party.id,
    device: pin.fingerprint,
    isVerified,
    words,
    session: isSession ? session : undefined,
    nonce: decision.nonce,
    hash: decisionHash(decision),
  };
}

/** Whether the pinned lock of the device has verified a person. Without a pinned one, what it says counts for nothing. */
async function verifyPerson(decision: Decision, { lock }: Pin): Promise<boolean> {
  if (lock === undefined || !hasAssertion(decision.policyHints)) return false;
  try {
    await verifyLock(lock, parseObject(decision.source));
    return true;
  } catch (cause) {
    throw new RejectedError("lock", cause);
  }
}

/** Whether an approval needs a person whom the device has verified: by this end's own view of the request. */
function isPersonNeeded(request: BuiltRequest, { lock }: Pin): boolean {
  const artifact = parseArtifact(request.artifact);
  return (
    needsPerson(artifact) ||
    (lock !== undefined && alarmOf(readPayload(artifact.artifactType, artifact.payload)) !== "neutral")
  );
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
