// Ed25519, verified strictly. WebCrypto's own `verify` differs between engines in what it accepts at the edges, so the
// equation is written out here, exactly as the Rust side computes it (`verify_strict` of ed25519-dalek).

import { ed25519 } from "@noble/curves/ed25519.js";
import { sha512 } from "@noble/hashes/sha2.js";

import { type Bytes, concat } from "./bytes.ts";

const { Point } = ed25519;
type EdwardsPoint = InstanceType<typeof Point>;
const ORDER = Point.Fn.ORDER;

/** The public key of a seed. */
export function publicKeyOf(seed: Bytes): Bytes {
  return new Uint8Array(ed25519.getPublicKey(seed));
}

/** Whether the bytes are a key in its one encoding that is not weak: not of small order. */
export function isPublicKey(bytes: Uint8Array): boolean {
  return strongPoint(bytes) !== undefined;
}

/**
 * Whether the signature is that of the message: no key or point of small order, no encoding but the canonical one, no
 * scalar that is not reduced, and the equation without the cofactor.
 */
export function verifyStrict(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (signature.length !== 64) return false;
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32)];
  const [key, commitment, scalar] = [strongPoint(publicKey), strongPoint(r), littleEndian(s)];
  if (key === undefined || commitment === undefined || scalar >= ORDER) return false;
  const challenge = littleEndian(sha512(concat(r, publicKey, message))) % ORDER;
  const expected = Point.BASE.multiplyUnsafe(scalar).subtract(key.multiplyUnsafe(challenge));
  return expected.equals(commitment);
}

/** The point that the bytes encode canonically; `undefined` if they do not, or if it is of small order. */
function strongPoint(bytes: Uint8Array): EdwardsPoint | undefined {
  if (bytes.length !== 32) return undefined;
  try {
    const point = Point.fromBytes(bytes, false);
    return point.isSmallOrder() ? undefined : point;
  } catch {
    return undefined;
  }
}

function littleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((number, byte) => (number << 8n) | BigInt(byte), 0n);
}
