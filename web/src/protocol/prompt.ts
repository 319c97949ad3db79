// A prompt: words for an agent, or a statement about a device, from an approver to an enforcer (docs/prompts.md). No I/O.

import * as base64url from "./base64url.ts";
import { newRequestId, random, utf8 } from "./bytes.ts";
import { type Envelope, writeEnvelope } from "./envelope.ts";
import { CountersignError, type Explained, ReasonError } from "./errors.ts";
import { EXPIRES_AT, optionalExtension, requiredExtension, SALT, STATEMENT, STOP } from "./extension.ts";
import { hashWithout, hasItsHash } from "./hash.ts";
import { parseObject } from "./json.ts";
import { id, Members, nonEmpty, object, sha256, text, time, word } from "./members.ts";
import type { Pins } from "./pins.ts";
import type { Identity } from "./request.ts";
import { open, readSealed, SealError, seal } from "./seal.ts";
import { readStatement, type Statement } from "./statement.ts";
import type { Timestamp } from "./timestamp.ts";

/** Where the words go. */
export const TARGETS = ["agentChat", "composer", "tool", "other"] as const;

/** The place in the agent's user interface. */
export type Target = (typeof TARGETS)[number];

/** What a prompt says: words, a statement whose signature has still to be verified, or why an agent is stopped (may be empty). */
export type PromptContent = { text: string } | { statement: Statement } | { stop: string };

/** What an approver wants to say. */
export interface PromptDraft {
  /** A statement and a stop go to `other`. */
  readonly target: Target;
  readonly content: PromptContent;
  /** The session of the agent that is meant; absent if any. A stop has one, so that nothing stops more than was meant. */
  readonly sessionId?: string;
  /** From then on it must not be used: a gateway can hold a prompt back, and words have their time. */
  readonly expiresAt: Timestamp;
}

/** A prompt that is ready to be sent, as often as needed. */
export interface BuiltPrompt {
  readonly requestId: string;
  readonly promptHash: string;
  /** The `prompt.send` envelope, as JSON text. */
  readonly envelope: string;
}

export const PROMPT_STATUSES = ["queued", "delivered", "rejected", "expired", "error"] as const;

/** What became of a prompt, by the gateway's word. */
export type PromptStatus = (typeof PROMPT_STATUSES)[number];

/** A prompt can't be made. */
export class PromptError extends CountersignError {
  readonly code: "not-paired" | "empty-prompt" | "statement-target" | "stop-target";
  readonly next: string;

  constructor(code: PromptError["code"]) {
    const [message, next] = PROMPT_WORDS[code];
    super(message);
    this.code = code;
    this.next = next;
  }
}

const PROMPT_WORDS = {
  "not-paired": ["this device is not paired with the machine", "Pair it first."],
  "empty-prompt": ["the prompt has no text", "Write something first."],
  "statement-target": ["a statement is for the target other", "Send it to the target other."],
  "stop-target": ["a stop is for one session, and for the target other", "Name the session."],
} as const;

const STATEMENT_TEXT = "A signed statement about a device.";
const STOP_TEXT = "Stop this agent.";
const SKEW_MILLIS = 60_000;

/** Builds, salts, hashes and seals a prompt to every device of the enforcer that is pinned and counts now. */
export async function buildPrompt(
  draft: PromptDraft,
  approver: Identity,
  enforcerId: string,
  pins: Pins,
  now: Timestamp,
): Promise<BuiltPrompt> {
  const devices = pins.active("enforcer", now, enforcerId);
  if (devices.length === 0) throw new PromptError("not-paired");
  const requestId = newRequestId();
  const unhashed = plaintext(draft, requestId, now);
  const promptHash = hashWithout(parseObject(unhashed), "promptHash");
  const whole = `${unhashed.slice(0, -1)},"promptHash":"${promptHash}"}`;
  const { target, sessionId } = draft;
  const context = { kind: "prompt", requestId, promptHash, approverId: approver.id, target } as const;
  const recipients = devices.map(({ bundle }) => ({ id: enforcerId, bundle }));
  const ciphertext = await seal(approver.keys, context, utf8(whole), recipients);
  const body = `${JSON.stringify({ promptHash, target, sessionId }).slice(0, -1)},"ciphertext":${ciphertext}}`;
  const [sender, recipient] = [{ approverId: approver.id }, { enforcerId }];
  const envelope = writeEnvelope({ msgType: "prompt.send", requestId, createdAt: now, sender, recipient }, body);
  return { requestId, promptHash, envelope };
}

function plaintext({ target, content, sessionId, expiresAt }: PromptDraft, requestId: string, now: Timestamp): string {
  if ("text" in content && content.text === "") throw new PromptError("empty-prompt");
  if ("statement" in content && target !== "other") throw new PromptError("statement-target");
  if ("stop" in content && (target !== "other" || sessionId === undefined)) throw new PromptError("stop-target");
  const extensions = {
    [SALT.key]: base64url.encode(random(16)),
    [EXPIRES_AT.key]: expiresAt,
    ...("statement" in content ? { [STATEMENT.key]: JSON.parse(content.statement.source) as unknown } : {}),
    ...("stop" in content ? { [STOP]: true } : {}),
  };
  const words =
    "statement" in content ? STATEMENT_TEXT : "stop" in content ? content.stop.trim() || STOP_TEXT : content.text;
  const head = { requestId, sessionId, artifactType: "prompt.send", createdAt: now, target, text: words };
  return JSON.stringify({ ...head, promptHashAlg: "SHA-256", extensions });
}

/** A prompt that the enforcer has opened and checked. Whether it was taken before is for the caller's journal. */
export interface OpenedPrompt {
  readonly requestId: string;
  readonly promptHash: string;
  readonly approverId: string;
  readonly device: string;
  readonly target: Target;
  readonly content: PromptContent;
  readonly sessionId: string | undefined;
  readonly expiresAt: Timestamp;
}

/** Why a prompt is not used. */
export type PromptReason = "malformed" | "not-sealed" | "unknown-sender" | "seal" | "differs" | "expired";

const REFUSE = "It is not used. Answer that it was rejected.";
const PROMPT_REASONS: Explained<PromptReason> = {
  malformed: ["the prompt is not in a format that is known here", REFUSE],
  "not-sealed": ["the prompt is not sealed: anybody between could have written it", REFUSE],
  "unknown-sender": ["the prompt comes from a device that is not paired, or not any more", REFUSE],
  seal: ["the prompt does not open", REFUSE],
  differs: ["what was sealed differs from what the gateway says", REFUSE],
  expired: ["the prompt came too late", "It is not used. Answer that it has expired."],
};

/** A prompt failed a check. */
export class PromptRefusedError extends ReasonError<PromptReason> {
  readonly code = "prompt";

  constructor(reason: PromptReason, detail?: string, cause?: unknown) {
    super(reason, PROMPT_REASONS, detail);
    if (cause !== undefined) this.cause = cause;
  }
}

/** Opens a `prompt.send`, in the order of docs/trust.md. Throws {@link PromptRefusedError}. */
export async function openPrompt(
  envelope: Envelope,
  enforcer: Identity,
  pins: Pins,
  now: Timestamp,
): Promise<OpenedPrompt> {
  const outer = readOuter(envelope);
  const pin = pins.get(outer.sealed.sender);
  if (pin === undefined || pin.party.role !== "approver" || !pins.isActive(pin.fingerprint, now)) {
    throw new PromptRefusedError("unknown-sender");
  }
  const { requestId } = envelope;
  const [approverId, { promptHash, target }] = [pin.party.id, outer];
  const opening = { keys: enforcer.keys, ownId: enforcer.id, sender: pin.bundle };
  const content = await open(outer.sealed, opening, {
    kind: "prompt",
    requestId,
    promptHash,
    approverId,
    target,
  }).catch((cause: unknown) => {
    throw cause instanceof SealError ? new PromptRefusedError("seal", cause.message, cause) : cause;
  });
  const inner = readInner(content);
  const differs: readonly (readonly [string, boolean])[] = [
    ["promptHash", !inner.isHashed || inner.promptHash !== promptHash],
    ["requestId", inner.requestId !== requestId],
    ["target", inner.target !== target],
  ];
  const different = differs.find(([, isOther]) => isOther);
  if (different !== undefined) throw new PromptRefusedError("differs", different[0]);
  const isForOther = "statement" in inner.content || "stop" in inner.content;
  if (isForOther && target !== "other") throw new PromptRefusedError("malformed");
  if ("stop" in inner.content && inner.sessionId === undefined) throw new PromptRefusedError("malformed");
  if (!now.isBefore(inner.expiresAt.plus(SKEW_MILLIS))) throw new PromptRefusedError("expired");
  const { sessionId, expiresAt } = inner;
  return {
    requestId,
    promptHash,
    approverId,
    device: pin.fingerprint,
    target,
    content: inner.content,
    sessionId,
    expiresAt,
  };
}

function readOuter(envelope: Envelope) {
  const ciphertext = envelope.body.members.get("ciphertext");
  if (envelope.msgType !== "prompt.send") throw new PromptRefusedError("malformed");
  if (ciphertext === undefined) throw new PromptRefusedError("not-sealed");
  try {
    const members = new Members(envelope.body);
    const [promptHash, target] = [members.required("promptHash", sha256), members.required("target", word(TARGETS))];
    return { promptHash, target, sealed: readSealed(ciphertext) };
  } catch (cause) {
    throw new PromptRefusedError("malformed", undefined, cause);
  }
}

function readInner(plaintextBytes: Uint8Array) {
  try {
    const source = parseObject(plaintextBytes);
    const members = new Members(source);
    members.required("artifactType", word(["prompt.send"]));
    members.required("promptHashAlg", word(["SHA-256"]));
    members.required("createdAt", time);
    members.optional("repoRef", text);
    members.optional("metadata", object);
    const words = members.required("text", nonEmpty);
    const extensions = members.required("extensions", object);
    requiredExtension(extensions, SALT, text);
    const statement = optionalExtension(extensions, STATEMENT, readStatement);
    if (statement !== undefined && words !== STATEMENT_TEXT) throw new PromptRefusedError("malformed");
    const stop = extensions.members.get(STOP);
    // Anything but true is not what somebody meant.
    if (stop !== undefined && (stop !== true || statement !== undefined)) throw new PromptRefusedError("malformed");
    const content: PromptContent =
      statement !== undefined ? { statement } : stop === true ? { stop: words } : { text: words };
    const inner = {
      requestId: members.required("requestId", id),
      sessionId: members.optional("sessionId", id),
      target: members.required("target", word(TARGETS)),
      promptHash: members.required("promptHash", sha256),
      expiresAt: requiredExtension(extensions, EXPIRES_AT, time),
      content,
      isHashed: hasItsHash(source, "promptHash"),
    };
    members.close();
    return inner;
  } catch (cause) {
    throw new PromptRefusedError("malformed", undefined, cause);
  }
}
