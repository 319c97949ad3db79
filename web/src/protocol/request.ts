// A request on its way: built, hashed and sealed by an enforcer; opened and checked by an approver. No I/O.

import {
  type Action,
  type Artifact,
  type ArtifactType,
  needsPerson,
  readArtifact,
  repoName,
  requestedActions,
  sessionOf,
  supersededOf,
} from "./artifact.ts";
import * as base64url from "./base64url.ts";
import { newRequestId, random, utf8 } from "./bytes.ts";
import type { DeviceKeys } from "./device.ts";
import { type Editable, editables, isEdited } from "./edit.ts";
import { type Envelope, writeEnvelope } from "./envelope.ts";
import { type Explained, HashError, ReasonError, UnsafeNumberError } from "./errors.ts";
import { EDITED, EDITS, REPO_NAME, REQUESTED_ACTIONS, SALT, SUPERSEDES, VERIFY } from "./extension.ts";
import { hashWithout } from "./hash.ts";
import { type JsonObject, parseObject } from "./json.ts";
import { Members, sha256, text } from "./members.ts";
import type { Pin, Pins } from "./pins.ts";
import { open, readSealed, SealError, seal } from "./seal.ts";
import { Timestamp } from "./timestamp.ts";

/** A request that an approver has opened and checked. */
export interface OpenedRequest {
  readonly requestId: string;
  /** Who asks, as its pinned keys have proven. */
  readonly enforcerId: string;
  readonly artifactType: ArtifactType;
  /** The hash of the artifact, recomputed here. */
  readonly artifactHash: string;
  /** The opaque reference that the decision repeats. */
  readonly repoRef: string;
  /** The name behind the reference; `undefined` if the enforcer gave none. */
  readonly repoName: string | undefined;
  /** The session that it belongs to; only then an approval can be for a session. */
  readonly session: string | undefined;
  /** The request whose place it takes, in the words of the same enforcer; `undefined` if it is a new one. */
  readonly supersedes: string | undefined;
  /** What may be changed before it is approved; empty if nothing may. */
  readonly edits: readonly Editable[];
  /** Whether the machine says that a change by this device made it. Then it can be approved once, and not otherwise. */
  readonly isEdited: boolean;
  /** Whether an approval needs the lock of this device, by the rules of the machine; what is dangerous may need it besides. */
  readonly needsPerson: boolean;
  /** When the enforcer made it, by its clock. */
  readonly createdAt: Timestamp;
  /** The time from which it can't be decided. */
  readonly expiresAt: Timestamp;
  /** The content to review. */
  readonly payload: JsonObject;
  /** The artifact that it is in, as it was sealed. */
  readonly artifact: string;
  /** Buttons that the enforcer requests; empty for Approve and Reject. */
  readonly actions: readonly Action[];
  /** The device that sent it, to which the words of the decision are sealed. */
  readonly sentBy: Pin;
  /** The devices that it is sealed to. But for this one, that is the gateway's word. */
  readonly sealedTo: readonly { readonly id: string; readonly fingerprint: string }[];
}

/** Why a request is not shown for a decision. */
export type OpenReason = "malformed" | "not-sealed" | "unknown-sender" | "seal" | "differs";

const OPEN_REASONS: Explained<OpenReason> = {
  malformed: [
    "the request is not in a format that is known here",
    "Update this program, or look at the request elsewhere. It can't be approved here.",
  ],
  "not-sealed": [
    "the request is not sealed: anybody between could have written it",
    "Do not approve it. Ask the machine to send it sealed.",
  ],
  "unknown-sender": [
    "it comes from a machine that is not paired with this device",
    "Pair this device with the machine, if you know it, and ask for the request again.",
  ],
  seal: ["the request does not open", "Ask the machine to send it again. It can't be approved here."],
  differs: [
    "what was sealed differs from what the gateway says",
    "Do not approve it. The gateway shows it as something else.",
  ],
};

/** A request can't be checked, so it can't be approved. Show it with the reason. */
export class OpenError extends ReasonError<OpenReason> {
  readonly code = "open";
  /** With `unknown-sender` the enforcer that the gateway names; else what differs, or why the seal does not open. */
  readonly detail: string | undefined;
  /** With `unknown-sender` the fingerprint of the keys that claim to have sealed it. Nothing proves it. */
  readonly claimedKey: string | undefined;

  constructor(reason: OpenReason, detail?: string, cause?: unknown, claimedKey?: string) {
    super(reason, OPEN_REASONS, detail);
    this.detail = detail;
    this.claimedKey = claimedKey;
    if (cause !== undefined) this.cause = cause;
  }
}

/** One end: an approver or an enforcer, with the keys of this device. */
export interface Identity {
  readonly id: string;
  readonly keys: DeviceKeys;
}

/**
 * Opens an `approval.request`, in this order: shape, sealed, sender pinned, sealed by that sender to this device in this
 * context, hash of the content, agreement of content and envelope. Throws {@link OpenError}.
 */
export async function openRequest(
  envelope: Envelope,
  approver: Identity,
  pins: Pins,
  now: Timestamp,
): Promise<OpenedRequest> {
  const outer = readOuter(envelope);
  const pin = pins.get(outer.sealed.sender);
  const isOfEnforcer = pin?.party.role === "enforcer" && pin.party.id === outer.enforcerId;
  if (pin === undefined || !isOfEnforcer || !pins.isActive(pin.fingerprint, now)) {
    throw new OpenError("unknown-sender", outer.enforcerId, undefined, outer.sealed.sender);
  }
  const { artifactHash, enforcerId, expiresAt } = outer;
  const context = { kind: "artifact", requestId: envelope.requestId, artifactHash, enforcerId, expiresAt } as const;
  const opening = { keys: approver.keys, ownId: approver.id, sender: pin.bundle };
  const content = await opened(() => open(outer.sealed, opening, context));
  const artifact = readInner(content);
  const differs: readonly (readonly [string, boolean])[] = [
    ["artifactHash", artifact.artifactHash !== artifactHash],
    ["requestId", artifact.requestId !== envelope.requestId],
    ["expiresAt", !artifact.expiresAt.equals(outer.expires)],
    ["artifactType", artifact.artifactType !== outer.artifactType],
  ];
  const different = differs.find(([, isOther]) => isOther);
  if (different !== undefined) throw new OpenError("differs", different[0]);
  return {
    requestId: artifact.requestId,
    enforcerId,
    artifactType: artifact.artifactType,
    artifactHash,
    repoRef: artifact.repoRef,
    repoName: repoName(artifact),
    session: sessionOf(artifact),
    supersedes: supersededOf(artifact),
    edits: editables(artifact),
    isEdited: isEdited(artifact),
    needsPerson: needsPerson(artifact),
    createdAt: artifact.createdAt,
    expiresAt: artifact.expiresAt,
    payload: artifact.payload,
    artifact: new TextDecoder().decode(content),
    actions: requestedActions(artifact),
    sentBy: pin,
    sealedTo: outer.sealed.recipients.flatMap(({ approverId, fingerprint }) =>
      approverId === undefined ? [] : [{ id: approverId, fingerprint }],
    ),
  };
}

/** What stands around the sealed artifact, which is the gateway's word. */
function readOuter(envelope: Envelope) {
  if (envelope.msgType !== "approval.request") throw new OpenError("malformed");
  const ciphertext = envelope.body.members.get("ciphertext");
  if (ciphertext === undefined) throw new OpenError("not-sealed");
  try {
    const members = new Members(envelope.body);
    const expiresAt = members.required("expiresAt", text);
    const [expires, enforcerId] = [Timestamp.parse(expiresAt), envelope.sender.enforcerId];
    if (expires === undefined || enforcerId === undefined) throw new OpenError("malformed");
    const artifactHash = members.required("artifactHash", sha256);
    const artifactType = members.optional("artifactType", text);
    return { sealed: readSealed(ciphertext), artifactHash, artifactType, expiresAt, expires, enforcerId };
  } catch (cause) {
    throw cause instanceof OpenError ? cause : new OpenError("malformed", undefined, cause);
  }
}

async function opened<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    throw cause instanceof SealError ? new OpenError("seal", cause.message, cause) : cause;
  }
}

function readInner(content: Uint8Array): Artifact {
  try {
    return readArtifact(content);
  } catch (cause) {
    const isOther = cause instanceof HashError || cause instanceof UnsafeNumberError;
    throw isOther ? new OpenError("differs", "artifactHash", cause) : new OpenError("malformed", undefined, cause);
  }
}

/** What an enforcer asks for. */
export interface RequestDraft {
  readonly artifactType: ArtifactType;
  /** The content to review, a JSON object as text. See docs/payloads.md. */
  readonly payload: string;
  /** The opaque reference that the decision repeats; the gateway does not see the name behind it. */
  readonly repoRef: string;
  readonly repoName: string;
  readonly expiresAt: Timestamp;
  readonly session?: string;
  /** The request that this one takes the place of, after a refresh. */
  readonly supersedes?: string;
  /** JSON pointers into the message of the call: what may be changed before it is approved. */
  readonly edits?: readonly string[];
  /** Whether a change by the device that is asked made it. */
  readonly edited?: boolean;
  /** Whether an approval needs a person whom their device has verified. */
  readonly needsPerson?: boolean;
  readonly actions?: readonly Action[];
}

/** A request with everything that its answer is checked against. */
export interface BuiltRequest {
  readonly requestId: string;
  readonly artifactHash: string;
  readonly repoRef: string;
  readonly expiresAt: Timestamp;
  readonly session: string | undefined;
  /** The artifact in the clear, as JSON text. */
  readonly artifact: string;
  /** The `artifact.submit` envelope, as JSON text. */
  readonly envelope: string;
}

/** Builds, salts, hashes and seals a request to every approver's device that is pinned and counts now. */
export async function buildRequest(
  draft: RequestDraft,
  enforcer: Identity,
  pins: Pins,
  now: Timestamp,
): Promise<BuiltRequest> {
  const requestId = newRequestId();
  const extensions = {
    [SALT.key]: base64url.encode(random(16)),
    [REPO_NAME.key]: draft.repoName,
    ...(draft.supersedes === undefined ? {} : { [SUPERSEDES]: draft.supersedes }),
    ...(draft.edits === undefined ? {} : { [EDITS]: draft.edits }),
    ...(draft.edited === true ? { [EDITED]: true } : {}),
    ...(draft.needsPerson === true ? { [VERIFY]: "person" } : {}),
    ...(draft.actions === undefined ? {} : { [REQUESTED_ACTIONS]: { version: 1, actions: draft.actions } }),
  };
  const { artifactType, repoRef, expiresAt } = draft;
  const [sessionId, artifactHashAlg] = [draft.session, "SHA-256"];
  const head = { requestId, sessionId, artifactType, repoRef, createdAt: now, expiresAt, artifactHashAlg, extensions };
  const unhashed = `${JSON.stringify(head).slice(0, -1)},"payload":${parseObject(draft.payload).source}}`;
  const artifactHash = hashWithout(parseObject(unhashed), "artifactHash");
  const artifact = `${unhashed.slice(0, -1)},"artifactHash":"${artifactHash}"}`;
  const context = {
    kind: "artifact",
    requestId,
    artifactHash,
    enforcerId: enforcer.id,
    expiresAt: `${expiresAt}`,
  } as const;
  const pinned = pins.active("approver", now);
  const recipients = pinned.map((pin) => ({ id: pin.party.id, bundle: pin.bundle }));
  const ciphertext = await seal(enforcer.keys, context, utf8(artifact), recipients);
  const body = `${JSON.stringify({ artifactType, artifactHash, expiresAt }).slice(0, -1)},"ciphertext":${ciphertext}}`;
  const only = new Set(recipients.map(({ id }) => id)).size === 1 ? recipients[0] : undefined;
  const envelope = writeEnvelope(
    {
      msgType: "artifact.submit",
      requestId,
      createdAt: now,
      expiresAt,
      sender: { enforcerId: enforcer.id },
      ...(only === undefined ? {} : { recipient: { approverId: only.id } }),
    },
    body,
  );
  return { requestId, artifactHash, repoRef, expiresAt, session: draft.session, artifact, envelope };
}
