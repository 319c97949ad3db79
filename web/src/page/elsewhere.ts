// Who has answered a request on another device: by a signature that this device can check, else by the relay's word.

import type { VouchedDevice } from "../keys/record.ts";
import {
  type DeviceKeys,
  type JsonObject,
  type OpenedRequest,
  type Outcome,
  parseBundle,
  readDecision,
  verifyDecisionSignature,
} from "../protocol/index.ts";

/** An answer that was given elsewhere. */
export interface Elsewhere {
  readonly outcome: Outcome;
  /** Whose device it was. */
  readonly approverId: string;
  /** What the device is called; empty if nobody has said it here. */
  readonly device: string;
  /** Whether its signature was checked here, with keys that this device has vouched for or that are its own. */
  readonly isVerified: boolean;
}

/**
 * Whose answer a decision is; `undefined` if it is about something else, or comes from a device that nothing names. Without
 * keys of the device here, its owner is the one that the request was sealed to, which a relay can change.
 */
export function elsewhere(
  found: JsonObject | undefined,
  request: OpenedRequest,
  own: { readonly id: string; readonly keys: Pick<DeviceKeys, "fingerprint" | "bundle"> },
  vouched: readonly VouchedDevice[],
): Elsewhere | undefined {
  const decision = found === undefined ? undefined : readOrNothing(found.source);
  if (decision?.requestId !== request.requestId || decision.artifactHash !== request.artifactHash) return undefined;
  const { decision: outcome, signerKeyId } = decision;
  const isSigned = (key: Uint8Array): boolean => verifyDecisionSignature(decision, key);
  if (signerKeyId === own.keys.fingerprint)
    return isSigned(own.keys.bundle.signing)
      ? { outcome, approverId: own.id, device: "", isVerified: true }
      : undefined;
  const known = vouched.find(({ fingerprint }) => fingerprint === signerKeyId);
  const device = known?.label ?? "";
  if (known?.keys !== undefined) {
    const { approverId } = known;
    return isSigned(parseBundle(known.keys).signing) ? { outcome, approverId, device, isVerified: true } : undefined;
  }
  const addressed = request.sealedTo.find(({ fingerprint }) => fingerprint === signerKeyId);
  const approverId = known?.approverId ?? addressed?.id;
  return approverId === undefined ? undefined : { outcome, approverId, device, isVerified: false };
}

function readOrNothing(source: string): ReturnType<typeof readDecision> | undefined {
  try {
    return readDecision(source);
  } catch {
    return undefined;
  }
}
