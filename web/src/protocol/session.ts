// Sealed snapshots of an agent's session: sealed by an enforcer, opened and checked by an approver. No I/O.

import { sha1 } from "@noble/hashes/legacy.js";

import * as base64url from "./base64url.ts";
import { type Bytes, concat, random, utf8, uuid } from "./bytes.ts";
import { type Explained, ReasonError } from "./errors.ts";
import { SALT } from "./extension.ts";
import { hashWithout, hasItsHash } from "./hash.ts";
import { type JsonObject, type JsonValue, parseObject } from "./json.ts";
import { id, Members, object, sha256, time, word } from "./members.ts";
import type { Pin, Pins } from "./pins.ts";
import type { Identity } from "./request.ts";
import { open, type Recipient, readSealed, SealError, seal } from "./seal.ts";
import type { Timestamp } from "./timestamp.ts";

/** What kind of content a snapshot has; a session keeps the newest of each. */
export const SNAPSHOT_TYPES = ["summary", "plan", "diff_summary", "context"] as const;

/** The kind of a snapshot's content. */
export type SnapshotType = (typeof SNAPSHOT_TYPES)[number];

/** The session of this name: a UUID of version 5 (RFC 9562), so that both ends know it. */
export function namedSession(namespace: Uint8Array, name: Bytes): string {
  return uuid(sha1(concat(namespace, name)).slice(0, 16), 5);
}

interface SnapshotEvent {
  readonly sessionId: string;
  readonly snapshotId: string;
  readonly snapshotType: SnapshotType;
  readonly createdAt: Timestamp;
  readonly payload: JsonObject;
  readonly snapshotHash: string;
  readonly metadata: JsonObject | undefined;
}

/** A snapshot that an approver has opened and checked. */
export interface OpenedSnapshot {
  readonly sessionId: string;
  readonly snapshotId: string;
  readonly snapshotType: SnapshotType;
  readonly createdAt: Timestamp;
  /** The content. */
  readonly payload: JsonObject;
  /** The device that sealed it, which is an enforcer's. */
  readonly sentBy: Pin;
}

/** Why a snapshot is not shown. */
export type SnapshotReason = "malformed" | "not-sealed" | "unknown-sender" | "seal" | "differs";

const NEXT = "It is not shown. Wait for the next one, or look at the machine itself.";
const SNAPSHOT_REASONS: Explained<SnapshotReason> = {
  malformed: ["the snapshot is not in a format that is known here", NEXT],
  "not-sealed": ["the snapshot is not sealed: anybody between could have written it", NEXT],
  "unknown-sender": ["the snapshot comes from a device that is not paired, or not any more", NEXT],
  seal: ["the snapshot does not open", NEXT],
  differs: ["what was sealed differs from what the gateway says", NEXT],
};

/** A snapshot can't be checked, so it is not shown. */
export class SnapshotError extends ReasonError<SnapshotReason> {
  readonly code = "snapshot";

  constructor(reason: SnapshotReason, detail?: string, cause?: unknown) {
    super(reason, SNAPSHOT_REASONS, detail);
    if (cause !== undefined) this.cause = cause;
  }
}

function readEvent(value: JsonValue): SnapshotEvent {
  const members = new Members(value);
  members.required("eventType", word(["session.snapshot"]));
  members.required("snapshotHashAlg", word(["SHA-256"]));
  const event = {
    sessionId: members.required("sessionId", id),
    snapshotId: members.required("snapshotId", id),
    snapshotType: members.required("snapshotType", word(SNAPSHOT_TYPES)),
    createdAt: members.required("createdAt", time),
    payload: members.required("payload", object),
    snapshotHash: members.required("snapshotHash", sha256),
    metadata: members.optional("metadata", object),
  };
  members.close();
  return event;
}

/**
 * Opens the event of a snapshot, in this order: shape, sealed, sender pinned as an enforcer, sealed by that sender to this
 * device in this context, hash of the content, agreement of content and event. Throws {@link SnapshotError}.
 */
export async function openSnapshot(
  event: JsonObject,
  approver: Identity,
  pins: Pins,
  now: Timestamp,
): Promise<OpenedSnapshot> {
  const outer = orMalformed(() => readEvent(event));
  const ciphertext = outer.payload.members.get("ciphertext");
  if (ciphertext === undefined) throw new SnapshotError("not-sealed");
  const sealed = orMalformed(() => readSealed(ciphertext));
  const pin = pins.get(sealed.sender);
  if (pin === undefined || pin.party.role !== "enforcer" || !pins.isActive(pin.fingerprint, now)) {
    throw new SnapshotError("unknown-sender");
  }
  const { sessionId, snapshotId, snapshotHash } = outer;
  const context = { kind: "snapshot", sessionId, snapshotId, snapshotHash, enforcerId: pin.party.id } as const;
  const opening = { keys: approver.keys, ownId: approver.id, sender: pin.bundle };
  const content = await open(sealed, opening, context).catch((cause: unknown) => {
    throw cause instanceof SealError ? new SnapshotError("seal", cause.message, cause) : cause;
  });
  const inner = readInner(content);
  const differs: readonly (readonly [string, boolean])[] = [
    ["snapshotHash", inner.snapshotHash !== snapshotHash],
    ["sessionId", inner.sessionId !== sessionId],
    ["snapshotId", inner.snapshotId !== snapshotId],
    ["snapshotType", inner.snapshotType !== outer.snapshotType],
  ];
  const different = differs.find(([, isOther]) => isOther);
  if (different !== undefined) throw new SnapshotError("differs", different[0]);
  const { snapshotType, createdAt, payload } = inner;
  return { sessionId, snapshotId, snapshotType, createdAt, payload, sentBy: pin };
}

function orMalformed<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new SnapshotError("malformed", undefined, cause);
  }
}

function readInner(content: Uint8Array): SnapshotEvent {
  const source = orMalformed(() => parseObject(content));
  const event = orMalformed(() => readEvent(source));
  if (!hasItsHash(source, "snapshotHash")) throw new SnapshotError("differs", "snapshotHash");
  return event;
}

/** What a snapshot says, before it is sealed. */
export interface SnapshotDraft {
  readonly sessionId: string;
  /** Unique within the session. */
  readonly snapshotId: string;
  readonly snapshotType: SnapshotType;
  /** The content, a JSON object as text. */
  readonly payload: string;
}

/** Builds, salts, hashes and seals a snapshot to these devices. Returns the event as JSON text. */
export async function sealSnapshot(
  draft: SnapshotDraft,
  enforcer: Identity,
  recipients: readonly Recipient[],
  now: Timestamp,
): Promise<string> {
  const { sessionId, snapshotId, snapshotType } = draft;
  const head = {
    eventType: "session.snapshot",
    sessionId,
    snapshotId,
    snapshotType,
    createdAt: now,
    snapshotHashAlg: "SHA-256",
  };
  const metadata = { [SALT.key]: base64url.encode(random(16)) };
  const payload = parseObject(draft.payload).source;
  const unhashed = `${JSON.stringify({ ...head, metadata }).slice(0, -1)},"payload":${payload}}`;
  const snapshotHash = hashWithout(parseObject(unhashed), "snapshotHash");
  const whole = `${unhashed.slice(0, -1)},"snapshotHash":"${snapshotHash}"}`;
  const context = { kind: "snapshot", sessionId, snapshotId, snapshotHash, enforcerId: enforcer.id } as const;
  const ciphertext = await seal(enforcer.keys, context, utf8(whole), recipients);
  return `${JSON.stringify({ ...head, snapshotHash }).slice(0, -1)},"payload":{"ciphertext":${ciphertext}}}`;
}
