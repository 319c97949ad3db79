// The lock of this device (WebAuthn with user verification): who holds the phone is asked for before something dangerous is
// approved. What it signs is part of the decision, and a machine that was paired with it verifies it.

import {
  type Assertion,
  type Bytes,
  checkLock,
  LOCK_ALGORITHMS,
  type LockKey,
  verifyAssertion,
} from "../protocol/index.ts";
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

/** Makes a credential of the lock, once for each browser. */
export async function createLock(name: string): Promise<LockCredential> {
  const publicKey: PublicKeyCredentialCreationOptions = {
    rp: { name: "Countersign" },
    user: { id: crypto.getRandomValues(new Uint8Array(16)), name, displayName: name },
    challenge: crypto.getRandomValues(new Uint8Array(32)),
    pubKeyCredParams: Object.values(LOCK_ALGORITHMS).map((alg) => ({ type: "public-key" as const, alg })),
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

/** What a machine verifies this device's lock by; `undefined` if no machine could, as on a page that has an address for a name. */
export function lockKey({ id, publicKey, algorithm }: LockCredential): LockKey | undefined {
  const names = Object.keys(LOCK_ALGORITHMS) as (keyof typeof LOCK_ALGORITHMS)[];
  const name = names.find((known) => LOCK_ALGORITHMS[known] === algorithm);
  if (name === undefined) return undefined;
  const { hostname: rpId, origin } = location;
  try {
    return checkLock({ algorithm: name, credentialId: id, publicKey: new Uint8Array(publicKey), rpId, origin });
  } catch {
    return undefined;
  }
}

/** Asks for the lock. Returns what it has signed, only if the person was verified for this challenge. */
export async function askLock(credential: LockCredential, challenge: Bytes): Promise<Assertion> {
  const key = lockKey(credential);
  if (key === undefined) throw new LockError("none");
  const publicKey: PublicKeyCredentialRequestOptions = {
    challenge,
    allowCredentials: [{ type: "public-key", id: credential.id }],
    userVerification: "required",
    timeout: 60_000,
  };
  const answer = await asked(() => navigator.credentials.get({ publicKey }));
  if (!(answer instanceof PublicKeyCredential) || !(answer.response instanceof AuthenticatorAssertionResponse))
    throw new LockError("wrong");
  const { authenticatorData, clientDataJSON, signature } = answer.response;
  const assertion = {
    credentialId: new Uint8Array(answer.rawId),
    authenticatorData: new Uint8Array(authenticatorData),
    clientDataJSON: new Uint8Array(clientDataJSON),
    signature: new Uint8Array(signature),
  };
  try {
    await verifyAssertion(key, assertion, challenge);
    return assertion;
  } catch (cause) {
    throw new LockError("wrong", cause);
  }
}

async function asked(ask: () => Promise<Credential | null>): Promise<Credential | null> {
  try {
    return await ask();
  } catch (cause) {
    const name = cause instanceof DOMException ? cause.name : "";
    throw new LockError(name === "SecurityError" || name === "NotSupportedError" ? "none" : "cancelled", cause);
  }
}
