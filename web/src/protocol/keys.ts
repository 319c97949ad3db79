// Public keys of a device: the bundle that pairing exchanges, and the fingerprints by which people recognise it.

import * as base64url from "./base64url.ts";
import { type Bytes, equal, hex, utf8 } from "./bytes.ts";
import { isPublicKey } from "./ed25519.ts";
import { type Explained, ReasonError } from "./errors.ts";
import { sha256 } from "./hash.ts";

/** The two public keys of a device, and in an answer to a pairing what proves them. */
export interface KeyBundle {
  /** Verifies the signatures of the device: Ed25519. */
  readonly signing: Bytes;
  /** Others seal to this key: X25519. */
  readonly agreement: Bytes;
  /** 32 bytes of an answer to a pairing; absent elsewhere. */
  readonly proof?: Bytes | undefined;
}

type BundleReason = "form" | "one-key" | "weak-signing" | "weak-agreement";
const NEXT = "Do not pair with this device. Update its program and pair again.";
const BUNDLE_REASONS: Explained<BundleReason> = {
  form: ["the keys are not in a format that is known here", NEXT],
  "one-key": ["the keys use one key for two purposes", NEXT],
  "weak-signing": ["the signing key is weak or not in its one encoding", NEXT],
  "weak-agreement": ["the encryption key is weak or not in its one encoding", NEXT],
};

/** The text is not a bundle of keys that can be trusted. */
export class BundleKeysError extends ReasonError<BundleReason> {
  readonly code = "keys";

  constructor(reason: BundleReason) {
    super(reason, BUNDLE_REASONS);
  }
}

/** Reads `v1.<Ed25519>.<X25519>[.<proof>]`. Throws {@link BundleKeysError}. */
export function parseBundle(text: string): KeyBundle {
  const [version, ...parts] = text.split(".");
  const keys = parts.map((part) => base64url.decodeExactly(part, 32));
  const [signing, agreement, proof] = keys;
  const isForm = version === "v1" && parts.length <= 3 && !keys.includes(undefined);
  if (!isForm || signing === undefined || agreement === undefined) throw new BundleKeysError("form");
  if (equal(signing, agreement)) throw new BundleKeysError("one-key");
  if (!isPublicKey(signing)) throw new BundleKeysError("weak-signing");
  if (!isAgreementKey(agreement)) throw new BundleKeysError("weak-agreement");
  return proof === undefined ? { signing, agreement } : { signing, agreement, proof };
}

/** The bundle as text, with its proof if it has one. */
export function formatBundle(bundle: KeyBundle): string {
  const keys = [bundle.signing, bundle.agreement, ...(bundle.proof === undefined ? [] : [bundle.proof])];
  return ["v1", ...keys.map(base64url.encode)].join(".");
}

/** The bundle without a proof. */
export function withoutProof({ signing, agreement }: KeyBundle): KeyBundle {
  return { signing, agreement };
}

/** The u-coordinates of small order, below 2^255 − 19: with them a shared secret would be constant. */
const SMALL_ORDER = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
  "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

/** Whether the bytes are an X25519 key in its one encoding that is not weak. */
export function isAgreementKey(bytes: Uint8Array): boolean {
  return bytes.length === 32 && isReduced(bytes) && !SMALL_ORDER.includes(hex(bytes));
}

/** Whether the little-endian number is below 2^255 − 19. */
function isReduced(bytes: Uint8Array): boolean {
  const last = bytes[31] ?? 0;
  if (last !== 0x7f) return last < 0x7f;
  return bytes.subarray(1, 31).some((byte) => byte !== 0xff) || (bytes[0] ?? 0) < 0xed;
}

/** The fingerprint of a device's keys, 32 bytes. */
export function fingerprintBytes(bundle: KeyBundle): Bytes {
  return sha256(utf8("countersign fingerprint v1\0"), bundle.signing, bundle.agreement);
}

/** The fingerprint of a device's keys in base64url: how programs name a device. */
export function fingerprint(bundle: KeyBundle): string {
  return base64url.encode(fingerprintBytes(bundle));
}

/** Whether a text can be a fingerprint. */
export function isFingerprint(text: string): boolean {
  return base64url.decodeExactly(text, 32) !== undefined;
}

/** Eight hex digits for lists, such as `9F3C-41AA`. They tell devices apart; they prove nothing. */
export function shortFingerprint(bundle: KeyBundle): string {
  const digits = hex(fingerprintBytes(bundle).subarray(0, 4)).toUpperCase();
  return `${digits.slice(0, 4)}-${digits.slice(4)}`;
}

/** Thirty digits in groups of five, for people who compare two screens. */
export function digits(digest: Uint8Array): string {
  const groups = [0, 5, 10, 15, 20, 25].map((start) => {
    const number = digest.subarray(start, start + 5).reduce((sum, byte) => sum * 256 + byte, 0);
    return String(number % 100_000).padStart(5, "0");
  });
  return groups.join(" ");
}

/** The thirty digits of a device. */
export function fingerprintDigits(bundle: KeyBundle): string {
  return digits(fingerprintBytes(bundle));
}

/** The thirty digits of a device that only its fingerprint names; `undefined` if the text is none. */
export function digitsOfFingerprint(text: string): string | undefined {
  const bytes = base64url.decodeExactly(text, 32);
  return bytes === undefined ? undefined : digits(bytes);
}
