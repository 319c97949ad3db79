// Pairing that a gateway can't subvert: what is compared and proven (docs/pairing.md). No I/O.

import { hmac } from "@noble/hashes/hmac.js";
import { sha256 as sha256Hash } from "@noble/hashes/sha2.js";

import { type Bytes, equal, random } from "./bytes.ts";
import { canonicalOf } from "./canonical.ts";
import { type Explained, ReasonError } from "./errors.ts";
import { sha256 } from "./hash.ts";
import { digits, fingerprint, formatBundle, type KeyBundle, withoutProof } from "./keys.ts";
import type { PairingLink } from "./link.ts";
import { formatLock, type LockKey } from "./lock.ts";

type PairingReason = "enforcer-replaced" | "approver-unproven" | "unknown-keys" | "unnamed";
const PAIRING_REASONS: Explained<PairingReason> = {
  "enforcer-replaced": [
    "the keys that the gateway relays are not those of the machine that shows the link",
    "Do not pair over this gateway. Report it to whoever runs it.",
  ],
  "approver-unproven": [
    "whoever answered did not see the link, or the gateway replaced their keys",
    "Start the pairing again. If the code was typed, start it with a typed code.",
  ],
  "unknown-keys": [
    "the other side has no keys of a known format",
    "Update the program of the other side, and pair again.",
  ],
  // The specification does not have the id in the answer, so nobody is to blame.
  unnamed: [
    "this gateway does not say whose machine a code belongs to",
    "Scan the QR code of the machine, or paste its link.",
  ],
};

/** Why two ends are not paired. Each but `unnamed` is a reason to stop. */
export class PairingError extends ReasonError<PairingReason> {
  readonly code = "pairing";

  constructor(reason: PairingReason) {
    super(reason, PAIRING_REASONS);
  }
}

/** What both ends must agree on: who pairs with whom, with which keys, in which run. */
export interface Transcript {
  readonly enforcerId: string;
  readonly enforcer: KeyBundle;
  readonly approverId: string;
  /** With the proof, where one is checked. */
  readonly approver: KeyBundle;
  /** The gateway's nonce of this pairing. */
  readonly nonce: string;
  /** The lock of who answers; absent for a device without one, and for programs that know version 1 only. */
  readonly lock?: LockKey | undefined;
}

/** The approver's side after a code was resolved: what to send, and what to show. */
export interface PairingAnswer {
  /** The `publicKey` of `complete`. */
  readonly bundle: KeyBundle;
  /** The digits to compare; `undefined` if the link has proven everything. */
  readonly digits: string | undefined;
}

function form(transcript: Transcript, purpose: "countersign pairing proof" | "countersign pairing digits"): Bytes {
  const { enforcerId, approverId, nonce } = transcript;
  const [enforcer, approver] = [transcript.enforcer, transcript.approver].map((it) => formatBundle(withoutProof(it)));
  const version = transcript.lock === undefined ? { v: 1 } : { v: 2, lock: formatLock(transcript.lock) };
  return canonicalOf({ purpose, ...version, enforcerId, enforcer, approverId, approver, nonce });
}

function proof(transcript: Transcript, secret: Bytes): Bytes {
  return new Uint8Array(hmac(sha256Hash, secret, form(transcript, "countersign pairing proof")));
}

function shownDigits(transcript: Transcript, fresh: Bytes): string {
  return digits(sha256(form(transcript, "countersign pairing digits"), fresh));
}

/** Answers a scanned link: compares the enforcer's keys with the link's fingerprint, and proves the secret. */
export function answerLink(transcript: Transcript, link: PairingLink): PairingAnswer {
  const isReplaced = fingerprint(transcript.enforcer) !== link.fingerprint || transcript.enforcerId !== link.enforcerId;
  if (isReplaced) throw new PairingError("enforcer-replaced");
  return { bundle: { ...withoutProof(transcript.approver), proof: proof(transcript, link.secret) }, digits: undefined };
}

/** Answers a typed code. Nothing may be sealed or accepted before people have compared the digits. */
export function answerTyped(transcript: Transcript): PairingAnswer {
  const fresh = random(32);
  return { bundle: { ...withoutProof(transcript.approver), proof: fresh }, digits: shownDigits(transcript, fresh) };
}

/** The enforcer's check of an answer to its link. Throws {@link PairingError}. */
export function verifyLinkAnswer(transcript: Transcript, secret: Bytes): void {
  const claimed = transcript.approver.proof;
  const isProven = claimed !== undefined && equal(claimed, proof(transcript, secret));
  if (!isProven) throw new PairingError("approver-unproven");
}

/** The digits that the enforcer shows after a typed code was answered. Without random bytes there are none. */
export function typedDigits(transcript: Transcript): string {
  const fresh = transcript.approver.proof;
  if (fresh === undefined) throw new PairingError("approver-unproven");
  return shownDigits(transcript, fresh);
}
