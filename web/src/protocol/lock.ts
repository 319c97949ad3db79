// The lock of a device: a credential with which a person's own device says that it has verified them, and what it signs for a
// decision or a statement (docs/protocol.md, the lock of a device). No I/O.

import * as base64url from "./base64url.ts";
import { type Bytes, concat, equal, fromUtf8, utf8 } from "./bytes.ts";
import { canonicalWithoutPaths } from "./canonical.ts";
import { isPublicKey, verifyStrict } from "./ed25519.ts";
import { type Explained, FormatError, ReasonError } from "./errors.ts";
import { sha256 } from "./hash.ts";
import { JsonObject, parseObject } from "./json.ts";
import { flag, Members, type Read, text } from "./members.ts";

/** How locks sign, with the numbers that WebAuthn has for it. */
export const LOCK_ALGORITHMS = { ES256: -7, EdDSA: -8, RS256: -257 } as const;

/** How a lock signs. */
export type LockAlgorithm = keyof typeof LOCK_ALGORITHMS;

/** The extension that has a lock in a pairing. */
export const LOCK_EXTENSION = "org.countersign.lock";

/** The public half of a device's lock. */
export interface LockKey {
  readonly algorithm: LockAlgorithm;
  readonly credentialId: Bytes;
  /** A `SubjectPublicKeyInfo`. */
  readonly publicKey: Bytes;
  /** The domain to which the browser has bound the credential. */
  readonly rpId: string;
  /** The one page that may ask for it. */
  readonly origin: string;
}

const bytesOf = (digits: string): Bytes =>
  Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
const FRAMES: Record<LockAlgorithm, Bytes> = {
  ES256: bytesOf("301306072a8648ce3d020106082a8648ce3d030107"),
  EdDSA: bytesOf("300506032b6570"),
  RS256: bytesOf("300d06092a864886f70d0101010500"),
};

const WRONG = "is no lock of a device";

/** Checks a lock. Throws a `FormatError`. */
export function checkLock(lock: LockKey): LockKey {
  const { algorithm, credentialId, rpId, origin } = lock;
  const isKey = rawKey(lock) !== undefined && Object.hasOwn(FRAMES, algorithm);
  if (!isKey || credentialId.length < 1 || credentialId.length > 1_023 || !mayUse(origin, rpId))
    throw new FormatError("", WRONG);
  return lock;
}

/** Reads `v1.<algorithm>.<credentialId>.<publicKey>.<rpId>.<origin>`. Throws a `FormatError`. */
export function parseLock(lock: string): LockKey {
  const [version, algorithm, ...parts] = lock.split(".");
  const [credentialId, publicKey, rpId, origin] = parts.map(base64url.decode);
  const names = [rpId, origin].map((name) => (name === undefined ? undefined : fromUtf8(name)));
  if (version !== "v1" || algorithm === undefined || !isAlgorithm(algorithm) || parts.length !== 4)
    throw new FormatError("", WRONG);
  if (credentialId === undefined || publicKey === undefined || names[0] === undefined || names[1] === undefined)
    throw new FormatError("", WRONG);
  return checkLock({ algorithm, credentialId, publicKey, rpId: names[0], origin: names[1] });
}

function isAlgorithm(name: string): name is LockAlgorithm {
  return Object.hasOwn(LOCK_ALGORITHMS, name);
}

/** A lock as a member of an object. */
export const lock: Read<LockKey> = (value, at) => {
  try {
    return parseLock(text(value, at));
  } catch {
    throw new FormatError(at, WRONG);
  }
};

/** The lock as text. Two locks are the same if their texts are. */
export function formatLock({ algorithm, credentialId, publicKey, rpId, origin }: LockKey): string {
  const parts = [credentialId, publicKey, utf8(rpId), utf8(origin)];
  return ["v1", algorithm, ...parts.map(base64url.encode)].join(".");
}

/** Whether a page may use a domain: its host, or one above it. */
function mayUse(origin: string, rpId: string): boolean {
  const parts = /^(https?):\/\/([a-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?$/.exec(origin);
  const [, scheme, host = "", port = "1"] = parts ?? [];
  const isLocal = host === "localhost" || host.endsWith(".localhost");
  if (parts === null || Number(port) > 65_535 || (scheme === "http" && !isLocal)) return false;
  return rpId !== "" && !rpId.startsWith(".") && (host === rpId || host.endsWith(`.${rpId}`));
}

/** The key without its frame: the point of ES256, the 32 bytes of EdDSA, the `RSAPublicKey` of RS256. */
function rawKey({ algorithm, publicKey }: LockKey): Bytes | undefined {
  const outer = new Der(publicKey);
  const inner = new Der(outer.value(0x30) ?? Uint8Array.of());
  const start = inner.rest;
  inner.value(0x30);
  const named = start.subarray(0, start.length - inner.rest.length);
  const bits = inner.value(0x03);
  if (bits === undefined || bits[0] !== 0 || outer.rest.length + inner.rest.length > 0) return undefined;
  if (!equal(named, FRAMES[algorithm])) return undefined;
  const key = bits.slice(1);
  const isKey = {
    ES256: () => key.length === 65 && key[0] === 4,
    EdDSA: () => isPublicKey(key),
    RS256: () => {
      const [modulus, exponent] = twoPositives(key) ?? [];
      const size = modulus?.length ?? 0;
      return (
        (modulus?.[0] ?? 0) >= 0x80 && size >= 256 && size <= 512 && equal(exponent ?? key, Uint8Array.of(1, 0, 1))
      );
    },
  };
  return isKey[algorithm]() ? key : undefined;
}

/** The little of DER that locks need, strictly: one text for one value. */
class Der {
  rest: Bytes;

  constructor(bytes: Bytes) {
    this.rest = bytes;
  }

  /** The content of a value with this tag, whose length is written in the shortest way. */
  value(tag: number): Bytes | undefined {
    const [first, short = 0x80, high = 0, low = 0] = this.rest;
    const [length, start] =
      short < 0x80 ? [short, 2] : short === 0x81 && high >= 0x80 ? [high, 3] : [high * 256 + low, 4];
    const isShortest = short < 0x80 || (short === 0x81 && high >= 0x80) || (short === 0x82 && length >= 0x100);
    if (first !== tag || !isShortest || this.rest.length < start + length) return undefined;
    const content = this.rest.slice(start, start + length);
    this.rest = this.rest.slice(start + length);
    return content;
  }

  /** The digits of an integer above zero, without leading zeros. */
  positive(): Bytes | undefined {
    const digits = this.value(0x02);
    if (digits === undefined) return undefined;
    // A zero is there only where the number would be negative without it.
    const [first = 0x80, second = 0] = digits;
    if (first === 0) return second >= 0x80 ? digits.slice(1) : undefined;
    return first < 0x80 ? digits : undefined;
  }
}

/** Two integers above zero in a sequence, and nothing else. */
function twoPositives(der: Bytes): [Bytes, Bytes] | undefined {
  const outer = new Der(der);
  const inner = new Der(outer.value(0x30) ?? Uint8Array.of());
  const [one, two] = [inner.positive(), inner.positive()];
  if (one === undefined || two === undefined || outer.rest.length + inner.rest.length > 0) return undefined;
  return [one, two];
}

/** What a lock has signed for one decision or statement. Nothing in it is proven before it is verified. */
export interface Assertion {
  readonly credentialId: Bytes;
  readonly authenticatorData: Bytes;
  readonly clientDataJSON: Bytes;
  readonly signature: Bytes;
}

const bytes: Read<Bytes> = (value, at) => {
  const read = base64url.decode(text(value, at));
  if (read !== undefined && read.length > 0) return read;
  throw new FormatError(at, "is not base64url without padding, or is empty");
};

/** An assertion as a member of an object. */
export const assertion: Read<Assertion> = (value, at) => {
  const members = new Members(value, at);
  const read = {
    credentialId: members.required("credentialId", bytes),
    authenticatorData: members.required("authenticatorData", bytes),
    clientDataJSON: members.required("clientDataJSON", bytes),
    signature: members.required("signature", bytes),
  };
  members.close();
  return read;
};

/** An assertion as `policyHints.lock` has it, and `confirmed` of a statement. */
export function writeAssertion(made: Assertion): Record<keyof Assertion, string> {
  const { credentialId, authenticatorData, clientDataJSON, signature } = made;
  return {
    credentialId: base64url.encode(credentialId),
    authenticatorData: base64url.encode(authenticatorData),
    clientDataJSON: base64url.encode(clientDataJSON),
    signature: base64url.encode(signature),
  };
}

/** What a lock signs for a decision: all that it says but the two signatures. */
export function lockChallenge(decision: JsonObject): Bytes {
  const form = canonicalWithoutPaths(decision, [["signature"], ["policyHints", "lock"]]);
  return sha256(utf8("countersign lock v1\0"), form);
}

type LockReason =
  | "malformed"
  | "other-credential"
  | "other-type"
  | "other-decision"
  | "other-origin"
  | "other-site"
  | "not-verified"
  | "signature";
const NOT_DONE = "What was asked for is not done. Ask again, and confirm it on the device.";
const LOCK_REASONS: Explained<LockReason> = {
  malformed: ["what the device's lock says is not in a format that is known here", NOT_DONE],
  "other-credential": ["another lock than that of the device has confirmed it", NOT_DONE],
  "other-type": ["the device's lock was asked for something else", NOT_DONE],
  "other-decision": ["the device's lock has confirmed something else", NOT_DONE],
  "other-origin": ["another page has asked for the device's lock", NOT_DONE],
  "other-site": ["the device's lock has confirmed it for another site", NOT_DONE],
  "not-verified": ["the device's lock did not verify who was there", NOT_DONE],
  signature: ["the signature of the device's lock does not verify", NOT_DONE],
};

/** Why an assertion proves nothing. */
export class LockFault extends ReasonError<LockReason> {
  readonly code = "lock";

  constructor(reason: LockReason) {
    super(reason, LOCK_REASONS);
  }
}

/** Whether a decision has an assertion, whatever it is. */
export function hasAssertion(hints: JsonObject | undefined): boolean {
  return hints?.members.has("lock") ?? false;
}

/** As {@link verifyAssertion}, of the assertion that is in a decision, about that decision. */
export async function verifyLock(key: LockKey, decision: JsonObject): Promise<number> {
  return verifyAssertion(key, assertionOf(decision), lockChallenge(decision));
}

/**
 * Verifies an assertion under a lock, and returns how often the credential has signed, by its own count; that is no reason to
 * refuse anything. Throws {@link LockFault}.
 */
export async function verifyAssertion(key: LockKey, made: Assertion, challenge: Bytes): Promise<number> {
  const { client, data } = readOrFault(made);
  const refuse = (reason: LockReason, isWrong: boolean): void => {
    if (isWrong) throw new LockFault(reason);
  };
  refuse("other-credential", !equal(made.credentialId, key.credentialId));
  refuse("other-type", client.type !== "webauthn.get");
  refuse("other-decision", client.challenge !== base64url.encode(challenge));
  refuse("other-origin", client.origin !== key.origin || client.isCrossed || client.hasTopOrigin);
  refuse("other-site", !equal(data.site, sha256(utf8(key.rpId))));
  refuse("not-verified", (data.flags & 0x05) !== 0x05);
  const signed = concat(made.authenticatorData, sha256(made.clientDataJSON));
  refuse("signature", !(await isSigned(key, signed, made.signature)));
  return data.count;
}

function assertionOf(decision: JsonObject): Assertion {
  const hints = decision.members.get("policyHints");
  try {
    return assertion((hints instanceof JsonObject ? hints.members.get("lock") : undefined) ?? null, "lock");
  } catch {
    throw new LockFault("malformed");
  }
}

function readOrFault(made: Assertion) {
  try {
    const members = new Members(parseObject(made.clientDataJSON));
    const client = {
      type: members.required("type", text),
      challenge: members.required("challenge", text),
      origin: members.required("origin", text),
      isCrossed: members.optional("crossOrigin", flag) ?? false,
      hasTopOrigin: members.has("topOrigin"),
    };
    return { client, data: readData(made.authenticatorData) };
  } catch {
    throw new LockFault("malformed");
  }
}

/** What an authenticator says: the hash of a domain, flags, and how often it has signed. */
function readData(data: Bytes) {
  const flags = data[32] ?? 0;
  const hasExtensions = (flags & 0x80) !== 0;
  // An assertion has no new credential, and ends here unless it says that there are extensions.
  if (data.length < 37 || (flags & 0x40) !== 0 || hasExtensions !== data.length > 37)
    throw new FormatError("authenticatorData", WRONG);
  return { site: data.subarray(0, 32), flags, count: new DataView(data.buffer, data.byteOffset).getUint32(33) };
}

async function isSigned(key: LockKey, signed: Bytes, signature: Bytes): Promise<boolean> {
  const raw = rawKey(key);
  if (raw === undefined) return false;
  if (key.algorithm === "EdDSA") return verifyStrict(raw, signed, signature);
  const isEs256 = key.algorithm === "ES256";
  const form = isEs256 ? rawSignature(signature) : signature;
  if (form === undefined) return false;
  const named = isEs256 ? { name: "ECDSA", namedCurve: "P-256" } : { name: "RSASSA-PKCS1-v1_5" };
  const algorithm = { ...named, hash: "SHA-256" } as const;
  try {
    const imported = await crypto.subtle.importKey("spki", key.publicKey, algorithm, false, ["verify"]);
    return await crypto.subtle.verify(algorithm, imported, form, signed);
  } catch {
    // A point that is not on the curve.
    return false;
  }
}

/** An ECDSA signature in strict DER as the two numbers of 32 bytes that WebCrypto takes. */
function rawSignature(der: Bytes): Bytes | undefined {
  const numbers = twoPositives(der);
  if (numbers === undefined || numbers.some((number) => number.length > 32)) return undefined;
  return concat(...numbers.flatMap((number) => [new Uint8Array(32 - number.length), number]));
}
