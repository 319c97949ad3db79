// SHA-256, and the hash of an object over its canonical form.

import { sha256 as digest } from "@noble/hashes/sha2.js";

import { type Bytes, concat, equal, hex, utf8 } from "./bytes.ts";
import { canonical, canonicalWithout } from "./canonical.ts";
import { HashError, UnsafeNumberError } from "./errors.ts";
import type { JsonObject } from "./json.ts";

/** SHA-256 of all parts, one after the other. */
export function sha256(...parts: readonly Uint8Array[]): Bytes {
  return new Uint8Array(digest(parts.length === 1 && parts[0] !== undefined ? parts[0] : concat(...parts)));
}

/** SHA-256 in lowercase hex digits. */
export function sha256Hex(bytes: Uint8Array): string {
  return hex(sha256(bytes));
}

/** SHA-256 of the canonical object, in hex. */
export function hashOf(object: JsonObject): string {
  return sha256Hex(canonical(object));
}

/** SHA-256 of the canonical object without its member `member`, in hex: how an object carries its own hash. */
export function hashWithout(object: JsonObject, member: string): string {
  return sha256Hex(canonicalWithout(object, member));
}

/** Throws {@link HashError} unless the member has the hash of the rest of its object. */
export function checkHash(object: JsonObject, member: string): void {
  const claimed = object.members.get(member);
  const isRight = typeof claimed === "string" && equal(utf8(claimed), utf8(hashWithout(object, member)));
  if (!isRight) throw new HashError(member);
}

/** Whether the member has the hash of the rest of its object. */
export function hasItsHash(object: JsonObject, member: string): boolean {
  try {
    checkHash(object, member);
    return true;
  } catch (error) {
    if (error instanceof HashError || error instanceof UnsafeNumberError) return false;
    throw error;
  }
}
