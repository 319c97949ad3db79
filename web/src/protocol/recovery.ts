// The recovery code: the seed of keys that a device vouches for, and that vouch once for a new device.

import { hmac } from "@noble/hashes/hmac.js";
import { sha256 as sha256Hash } from "@noble/hashes/sha2.js";

import { type Bytes, concat, random, utf8 } from "./bytes.ts";
import { type DeviceKeys, keysFromSecret } from "./device.ts";
import { CountersignError } from "./errors.ts";
import { sha256 } from "./hash.ts";

/** Crockford's alphabet: no letter looks like a digit or another letter. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The text is not a recovery code. */
export class RecoveryCodeError extends CountersignError {
  readonly code = "not-a-recovery-code";
  readonly next = "Check every character: the code has seven groups of four.";

  constructor() {
    super("this is not a recovery code");
  }
}

/** A new code: 16 random bytes, to be shown once. */
export function newRecoverySeed(): Bytes {
  return random(16);
}

/** The code as people write it down: seven groups of four characters. */
export function formatRecoveryCode(seed: Bytes): string {
  const letters = groupsOfFive(seed).map((value) => ALPHABET.charAt(value));
  return (letters.join("").match(/.{4}/g) ?? []).join("-");
}

/** Reads a code as people type it; `O` is 0, `I` and `L` are 1. Throws {@link RecoveryCodeError}. */
export function parseRecoveryCode(text: string): Bytes {
  const letters = text.replace(/[- \t\n\f\r]/g, "");
  const values = Array.from(letters, (letter) => {
    // Only ASCII: toUpperCase would turn other letters into those of the alphabet.
    const upper = /[a-z]/.test(letter) ? letter.toUpperCase() : letter;
    return ALPHABET.indexOf(upper === "O" ? "0" : upper === "I" || upper === "L" ? "1" : upper);
  });
  if (values.length !== 28 || values.includes(-1)) throw new RecoveryCodeError();
  const bits = values.map((value) => value.toString(2).padStart(5, "0")).join("");
  const seed = Uint8Array.from({ length: 16 }, (_, at) => Number.parseInt(bits.slice(at * 8, at * 8 + 8), 2));
  const isRight = groupsOfFive(seed).every((value, at) => value === values[at]);
  if (!isRight) throw new RecoveryCodeError();
  return seed;
}

/** 128 bits and 12 bits of SHA-256 over them, as 28 numbers of five bits. */
function groupsOfFive(seed: Bytes): number[] {
  const bytes = concat(seed, sha256(seed).subarray(0, 2));
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("");
  return Array.from({ length: 28 }, (_, at) => Number.parseInt(bits.slice(at * 5, at * 5 + 5), 2));
}

/** The 64 secret bytes behind a code. */
export function recoverySecret(seed: Bytes): Bytes {
  const half = (purpose: string): Uint8Array => hmac(sha256Hash, seed, utf8(`countersign recovery v1 ${purpose}`));
  return concat(half("signing"), half("agreement"));
}

/** The keys behind a code, always the same. */
export async function recoveryKeys(seed: Bytes): Promise<DeviceKeys> {
  const secret = recoverySecret(seed);
  try {
    return await keysFromSecret(secret);
  } finally {
    secret.fill(0);
  }
}
