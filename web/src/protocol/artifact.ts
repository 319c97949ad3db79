// The artifact that an enforcer submits for review, as it is inside of the seal.

import { canonical, canonicalWithout } from "./canonical.ts";
import type { Outcome } from "./decision.ts";
import { FormatError } from "./errors.ts";
import { extensionValue, FORMER_SESSION_ID, REPO_NAME, REQUESTED_ACTIONS, SUPERSEDES, VERIFY } from "./extension.ts";
import { checkHash, sha256Hex } from "./hash.ts";
import { JsonNumber, JsonObject, type JsonValue, parseObject } from "./json.ts";
import { id, isId, list, Members, nonEmpty, number, object, sha256, text, time, word } from "./members.ts";
import type { Timestamp } from "./timestamp.ts";

/** The kinds of artifacts. */
export const ARTIFACT_TYPES = [
  "plan.review",
  "task.review",
  "patch.review",
  "command.review",
  "checkpoint.review",
] as const;

/** The kind of an artifact. */
export type ArtifactType = (typeof ARTIFACT_TYPES)[number];

/** A button that the enforcer requests, and the decision that it submits. */
export interface Action {
  /** Unique in its list, regardless of case. */
  readonly id: string;
  /** The text of the button; it comes from the other side, so show it with `visible`. */
  readonly caption: string;
  readonly style: "primary" | "secondary" | "danger";
  readonly decision: Outcome;
}

/** An artifact. */
export interface Artifact {
  readonly requestId: string;
  readonly sessionId: string | undefined;
  readonly artifactType: ArtifactType;
  readonly repoRef: string;
  readonly baseRevision: string | undefined;
  readonly createdAt: Timestamp;
  readonly expiresAt: Timestamp;
  readonly payload: JsonObject;
  readonly artifactHash: string;
  readonly metadata: JsonObject | undefined;
  readonly extensions: JsonObject | undefined;
}

/** Reads exactly an artifact and compares its hash. Throws a `JsonError`, a `FormatError` or a `HashError`. */
export function readArtifact(json: string | Uint8Array): Artifact {
  const source = parseObject(json);
  const artifact = readMembers(source);
  checkHash(source, "artifactHash");
  return artifact;
}

/** As {@link readArtifact}, without comparing the hash. */
export function parseArtifact(json: string): Artifact {
  return readMembers(parseObject(json));
}

function readMembers(value: JsonValue): Artifact {
  const members = new Members(value);
  members.required("artifactHashAlg", word(["SHA-256"]));
  const artifact = {
    requestId: members.required("requestId", id),
    sessionId: members.optional("sessionId", id),
    artifactType: members.required("artifactType", word(ARTIFACT_TYPES)),
    repoRef: members.required("repoRef", text),
    baseRevision: members.optional("baseRevision", text),
    createdAt: members.required("createdAt", time),
    expiresAt: members.required("expiresAt", time),
    payload: members.required("payload", object),
    artifactHash: members.required("artifactHash", sha256),
    metadata: members.optional("metadata", object),
    extensions: members.optional("extensions", object),
  };
  members.close();
  return artifact;
}

/** The name of the repository; `undefined` if the enforcer gave none. */
export function repoName({ extensions }: Artifact): string | undefined {
  const value = extensionValue(extensions, REPO_NAME);
  return typeof value === "string" ? value : undefined;
}

/** The session that an artifact belongs to: its member, or else the extension of earlier programs. */
export function sessionOf({ sessionId, extensions }: Artifact): string | undefined {
  const former = extensions?.members.get(FORMER_SESSION_ID);
  return sessionId ?? (typeof former === "string" ? former : undefined);
}

/** The request whose place an artifact takes; `undefined` if it is a new one, or if it names itself or nothing that is an id. */
export function supersededOf({ requestId, extensions }: Artifact): string | undefined {
  const value = extensions?.members.get(SUPERSEDES);
  return typeof value === "string" && isId(value) && value !== requestId ? value : undefined;
}

/** Whether an approval needs a person whom their device has verified. Whatever is said that is not known here, it does. */
export function needsPerson({ extensions }: Artifact): boolean {
  return extensions?.members.has(VERIFY) ?? false;
}

/** The buttons of an artifact. A list that is broken or not known is none: then there are Approve and Reject. */
export function requestedActions(artifact: Artifact): readonly Action[] {
  const value = artifact.extensions?.members.get(REQUESTED_ACTIONS);
  if (value === undefined) return [];
  try {
    return readActions(value, REQUESTED_ACTIONS);
  } catch {
    return [];
  }
}

function readActions(value: JsonValue, at: string): Action[] {
  const members = new Members(value, at);
  // Compared as a number: in JSON, 1 and 1.0 are the same integer.
  if (members.required("version", number) !== 1) throw new FormatError(at, "must be version 1");
  const actions = members.required("actions", list(readAction));
  members.close();
  const ids = new Set(actions.map((action) => action.id.toLowerCase()));
  if (actions.length < 1 || actions.length > 5 || ids.size !== actions.length) {
    throw new FormatError(at, "must be 1 to 5 actions with different ids");
  }
  return actions;
}

function readAction(value: JsonValue, at: string): Action {
  const members = new Members(value, at);
  const action: Action = {
    id: members.required("id", nonEmpty),
    caption: members.required("caption", nonEmpty),
    style: members.optional("style", word(["primary", "secondary", "danger"])) ?? "secondary",
    decision: members.required("decision", word(["approve", "reject"])),
  };
  members.close();
  return action;
}

/** Members of a call that identify it, with what stands for one that is absent (docs/payloads.md). */
const IN_KEY: Record<string, string> = {
  kind: "null",
  moment: "null",
  tool: "null",
  folder: "null",
  repository: "null",
  message: "{}",
  environment: "[]",
  files: "[]",
};

/** Who asks and why is no part of what a grant covers. */
const ABOUT = ["agent", "project", "branch", "task", "words"];

/**
 * Identifies what an artifact does, without salt, ids and times: the grant key. Payloads without a call are hashed with their
 * type and repository. Values stay texts here, so that no number is rounded before it is canonical.
 */
export function effectHash(artifactType: ArtifactType, payload: JsonObject, repoName: string): string {
  return sha256Hex(canonicalWithout(parseObject(effectText(artifactType, payload, repoName)), ""));
}

function effectText(artifactType: ArtifactType, payload: JsonObject, repoName: string): string {
  const { members } = payload;
  const version = members.get("version");
  const isOurs = members.get("schema") === "org.proto.payload" && version instanceof JsonNumber && version.value === 2;
  if (!isOurs) {
    const shell = JSON.stringify({ artifactType, repoName, v: 1 });
    return `${shell.slice(0, -1)},"payload":${payload.source}}`;
  }
  const call = members.get("call");
  if (!(call instanceof JsonObject)) {
    const kept = [...members].filter(([name]) => !ABOUT.includes(name));
    const shell = JSON.stringify({ v: 2, kind: artifactType, repository: repoName });
    return `${shell.slice(0, -1)},"call":${objectText(kept)}}`;
  }
  const key = Object.entries(IN_KEY).map(([name, absent]) => {
    const value = call.members.get(name);
    return `${JSON.stringify(name === "message" ? "call" : name)}:${value === undefined ? absent : jsonText(value)}`;
  });
  return `{"v":2,${key.join(",")}}`;
}

function objectText(members: readonly (readonly [string, JsonValue])[]): string {
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${jsonText(value)}`).join(",")}}`;
}

function jsonText(value: JsonValue): string {
  return new TextDecoder().decode(canonical(value));
}
