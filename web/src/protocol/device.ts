// The private keys of this device. They are WebCrypto keys that can't be exported: a program can use them, and nobody can
// copy them.

import { x25519 } from "@noble/curves/ed25519.js";

import { type Bytes, concat } from "./bytes.ts";
import { isPublicKey, publicKeyOf, verifyStrict } from "./ed25519.ts";
import { CountersignError } from "./errors.ts";
import { BundleKeysError, fingerprint, isAgreementKey, type KeyBundle } from "./keys.ts";

/** Signs with the key of one device. */
export interface Signer {
  /** The Ed25519 key that verifies what it signs. */
  readonly publicKey: Bytes;
  /** The 64 bytes of a signature. */
  sign(message: Bytes): Promise<Bytes>;
}

/** The keys of this device. */
export interface DeviceKeys {
  readonly signer: Signer;
  /** The X25519 keys, to seal and to open. */
  readonly agreement: CryptoKeyPair;
  /** The public halves. */
  readonly bundle: KeyBundle;
  /** Names the device. */
  readonly fingerprint: string;
}

/** What is kept of a device's keys: IndexedDB can store it as it is, and the private halves never leave the engine. */
export interface StoredKeys {
  readonly signing: CryptoKeyPair;
  readonly agreement: CryptoKeyPair;
}

/** This engine has no Ed25519 or X25519, or its keys do not work. */
export class UnsupportedKeysError extends CountersignError {
  readonly code = "unsupported-keys";
  readonly next = "Update this browser, or use another one: it needs Ed25519 and X25519 in WebCrypto.";

  constructor(cause: unknown) {
    super("this browser can't make or use the keys that are needed", { cause });
  }
}

/** New keys that can't be exported. Throws {@link UnsupportedKeysError}. */
export async function generateKeys(): Promise<StoredKeys> {
  try {
    const signing = (await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"])) as CryptoKeyPair;
    const agreement = (await crypto.subtle.generateKey("X25519", false, ["deriveBits"])) as CryptoKeyPair;
    return { signing, agreement };
  } catch (cause) {
    throw new UnsupportedKeysError(cause);
  }
}

/** The keys of a device, ready to be used. It signs once, so that keys that were damaged are noticed here. */
export async function openKeys(stored: StoredKeys): Promise<DeviceKeys> {
  try {
    const bundle = { signing: await rawPublic(stored.signing), agreement: await rawPublic(stored.agreement) };
    const signer = webCryptoSigner(stored.signing.privateKey, bundle.signing);
    const probe = new Uint8Array(32);
    if (!verifyStrict(bundle.signing, probe, await signer.sign(probe))) throw new Error("the signature is wrong");
    return deviceKeys(signer, stored.agreement, bundle);
  } catch (cause) {
    throw new UnsupportedKeysError(cause);
  }
}

// A private key in PKCS #8 is this prefix and the 32 bytes.
const PKCS8_ED25519 = Uint8Array.of(0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20);
const PKCS8_X25519 = Uint8Array.of(0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x6e, 4, 0x22, 4, 0x20);

/**
 * The keys behind 64 secret bytes: the seed of the signing key, then the private X25519 key. For recovery codes and for
 * tests; a device's own keys come from {@link generateKeys}. The caller overwrites the bytes.
 */
export async function keysFromSecret(secret: Bytes): Promise<DeviceKeys> {
  const [seed, agreementSecret] = [secret.slice(0, 32), secret.slice(32)];
  const bundle = { signing: publicKeyOf(seed), agreement: new Uint8Array(x25519.getPublicKey(agreementSecret)) };
  if (!isPublicKey(bundle.signing)) throw new BundleKeysError("weak-signing");
  if (!isAgreementKey(bundle.agreement)) throw new BundleKeysError("weak-agreement");
  const pkcs8 = [concat(PKCS8_ED25519, seed), concat(PKCS8_X25519, agreementSecret)] as const;
  try {
    const signing = await crypto.subtle.importKey("pkcs8", pkcs8[0], "Ed25519", false, ["sign"]);
    const privateKey = await crypto.subtle.importKey("pkcs8", pkcs8[1], "X25519", false, ["deriveBits"]);
    const publicKey = await crypto.subtle.importKey("raw", bundle.agreement, "X25519", true, []);
    return deviceKeys(webCryptoSigner(signing, bundle.signing), { privateKey, publicKey }, bundle);
  } catch (cause) {
    throw new UnsupportedKeysError(cause);
  } finally {
    for (const bytes of [seed, agreementSecret, ...pkcs8]) bytes.fill(0);
  }
}

/** Signs with a key of WebCrypto. */
export function webCryptoSigner(privateKey: CryptoKey, publicKey: Bytes): Signer {
  const sign = async (message: Bytes): Promise<Bytes> =>
    new Uint8Array(await crypto.subtle.sign("Ed25519", privateKey, message));
  return { publicKey, sign };
}

async function rawPublic(pair: CryptoKeyPair): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
}

function deviceKeys(signer: Signer, agreement: CryptoKeyPair, bundle: KeyBundle): DeviceKeys {
  return { signer, agreement, bundle, fingerprint: fingerprint(bundle) };
}
