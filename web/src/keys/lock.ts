// The lock of this device (WebAuthn with user verification): who holds the phone is asked for before something dangerous is
// approved. It is checked here, and is no part of what the machine verifies.

import { base64url } from "../protocol/index.ts";
import type { LockCredential } from "./record.ts";

/** The person was not verified; why. `none` means that this device has no lock that a page can use. */
export class LockError extends Error {
  override readonly name = "LockError";
  readonly reason: "none" | "cancelled" | "wrong";

  constructor(reason: LockError["reason"], cause?: unknown) {
    super(reason, { cause });
    this.reason = reason;
  }
}

/** Whether this device has a lock that a page can ask for. */
export async function hasLock(): Promise<boolean> {
  try {
    return window.isSecureContext && (await PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable());
  } catch {
    return false;
  }
}

const ES256 = -7;
const EDDSA = -8;
const RS256 = -257;

/** Makes a credential of the lock, once for each browser. */
export async function createLock(name: string): Promise<LockCredential> {
  const publicKey: PublicKeyCredentialCreationOptions = {
    rp: { name: "Countersign" },
    user: { id: crypto.getRandomValues(new Uint8Array(16)), name, displayName: name },
    challenge: crypto.getRandomValues(new Uint8Array(32)),
    pubKeyCredParams: [ES256, EDDSA, RS256].map((alg) => ({ type: "public-key" as const, alg })),
    authenticatorSelection: {
      authenticatorAttachment: "platform",
      userVerification: "required",
      residentKey: "discouraged",
    },
    attestation: "none",
    timeout: 60_000,
  };
  const made = await asked(() => navigator.credentials.create({ publicKey }));
  if (!(made instanceof PublicKeyCredential) || !(made.response instanceof AuthenticatorAttestationResponse))
    throw new LockError("wrong");
  const key = made.response.getPublicKey();
  if (key === null) throw new LockError("none");
  return { id: new Uint8Array(made.rawId), publicKey: key, algorithm: made.response.getPublicKeyAlgorithm() };
}

/** What the lock confirms: exactly this request, this content and this decision. */
export async function lockChallenge(
  requestId: string,
  artifactHash: string,
  nonce: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const text = JSON.stringify([requestId, artifactHash, nonce]);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

/** Asks for the lock. Returns only if the person was verified for this challenge. */
export async function askLock(credential: LockCredential, challenge: Uint8Array<ArrayBuffer>): Promise<void> {
  const publicKey: PublicKeyCredentialRequestOptions = {
    challenge,
    allowCredentials: [{ type: "public-key", id: credential.id }],
    userVerification: "required",
    timeout: 60_000,
  };
  const answer = await asked(() => navigator.credentials.get({ publicKey }));
  if (!(answer instanceof PublicKeyCredential) || !(answer.response instanceof AuthenticatorAssertionResponse))
    throw new LockError("wrong");
  await check(credential, challenge, answer.response);
}

async function asked(ask: () => Promise<Credential | null>): Promise<Credential | null> {
  try {
    return await ask();
  } catch (cause) {
    const name = cause instanceof DOMException ? cause.name : "";
    throw new LockError(name === "SecurityError" || name === "NotSupportedError" ? "none" : "cancelled", cause);
  }
}

async function check(
  credential: LockCredential,
  challenge: Uint8Array,
  response: AuthenticatorAssertionResponse,
): Promise<void> {
  const client: unknown = JSON.parse(new TextDecoder().decode(response.clientDataJSON));
  const data = new Uint8Array(response.authenticatorData);
  const isVerified = ((data[32] ?? 0) & 0x05) === 0x05;
  const isOurs =
    typeof client === "object" &&
    client !== null &&
    "challenge" in client &&
    client.challenge === base64url.encode(challenge) &&
    "origin" in client &&
    client.origin === location.origin;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", response.clientDataJSON));
  const signed = new Uint8Array([...data, ...digest]);
  if (!isVerified || !isOurs || !(await verify(credential, signed, new Uint8Array(response.signature))))
    throw new LockError("wrong");
}

async function verify(
  credential: LockCredential,
  signed: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  if (credential.algorithm === ES256) {
    const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("spki", credential.publicKey, algorithm, false, ["verify"]);
    return crypto.subtle.verify(algorithm, key, rawSignature(signature), signed);
  }
  const algorithm =
    credential.algorithm === EDDSA ? { name: "Ed25519" } : { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("spki", credential.publicKey, algorithm, false, ["verify"]);
  return crypto.subtle.verify(algorithm, key, signature, signed);
}

/** An ECDSA signature in DER as the two numbers of 32 bytes that WebCrypto takes. */
function rawSignature(der: Uint8Array): Uint8Array<ArrayBuffer> {
  const raw = new Uint8Array(64);
  let at = 2;
  for (const end of [32, 64]) {
    const length = der[at + 1] ?? 0;
    const number = der.subarray(at + 2, at + 2 + length);
    const digits = number.subarray(Math.max(0, number.length - 32));
    raw.set(digits, end - digits.length);
    at += 2 + length;
  }
  return raw;
}
