// Our own keys in `extensions` and `metadata`. They are in our namespace: `org.proto.` belongs to the protocol, which may define
// a key there that means something else.

import { FormatError } from "./errors.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import type { Read } from "./members.ts";

/** A key of ours. It is written as `key`, and read under the name that it had before too. */
export interface Extension {
  readonly key: string;
  readonly formerly: string;
}

/** 128 random bits, without which the hash of a sealed content could be guessed. */
export const SALT: Extension = { key: "org.countersign.salt", formerly: "org.proto.salt" };

/** The name behind `repoRef`, which the gateway must not learn. */
export const REPO_NAME: Extension = { key: "org.countersign.repoName", formerly: "org.proto.repoName" };

/** The time from which a prompt must not be used. */
export const EXPIRES_AT: Extension = { key: "org.countersign.expiresAt", formerly: "org.proto.expiresAt" };

/** The statement about a device that a prompt carries. */
export const STATEMENT: Extension = { key: "org.countersign.statement", formerly: "org.proto.statement" };

/** Who must have been verified for an approval of an artifact. Always `person`. It never had another name. */
export const VERIFY = "org.countersign.verify";

/** `true` in a prompt that stops the agent of a session. It never had another name. */
export const STOP = "org.countersign.stop";

/** The request that has expired, or is out of date, and whose place this one takes. Sealed, so it is the machine's own word. */
export const SUPERSEDES = "org.countersign.supersedes";

/** Which members of the call may be changed before it is approved: a list of JSON pointers. It never had another name. */
export const EDITS = "org.countersign.edits";

/** `true` in a request that the machine has made of a change by the device that it is sealed to. It never had another name. */
export const EDITED = "org.countersign.edited";

/** The extension in which the session of a request was before it was the artifact's own member. */
export const FORMER_SESSION_ID = "org.proto.sessionId";

/** The buttons that an enforcer requests. The key is the protocol's. */
export const REQUESTED_ACTIONS = "org.proto.requestedActions";

/** The value of a key of ours: under its name, or else under its former one. */
export function extensionValue(object: JsonObject | undefined, { key, formerly }: Extension): JsonValue | undefined {
  // What is there counts, also if it is broken.
  return object?.members.has(key) ? object.members.get(key) : object?.members.get(formerly);
}

/** Reads a key of ours that may be absent. */
export function optionalExtension<T>(object: JsonObject, extension: Extension, read: Read<T>): T | undefined {
  const value = extensionValue(object, extension);
  return value === undefined ? undefined : read(value, extension.key);
}

/** Reads a key of ours that must be there. */
export function requiredExtension<T>(object: JsonObject, extension: Extension, read: Read<T>): T {
  const value = optionalExtension(object, extension, read);
  if (value === undefined) throw new FormatError(extension.key, "is missing");
  return value;
}
