// A finished exchange as one JSON text that can be verified without a gateway (docs/bundles.md).

import { type Artifact, effectHash, needsPerson, parseArtifact, repoName } from "./artifact.ts";
import {
  type Decision,
  decisionHash,
  type Outcome,
  readDecision,
  type Scope,
  verifyDecisionSignature,
} from "./decision.ts";
import { CountersignError } from "./errors.ts";
import { hasItsHash } from "./hash.ts";
import { type JsonValue, parse, parseObject } from "./json.ts";
import { fingerprint, formatBundle, type KeyBundle, parseBundle } from "./keys.ts";
import { formatLock, hasAssertion, LockFault, type LockKey, parseLock, verifyLock } from "./lock.ts";
import { count, Members, text } from "./members.ts";
import type { Pin, Pins } from "./pins.ts";
import { isReceiptSignedBy, type Receipt, readReceipt } from "./receipt.ts";
import type { Identity } from "./request.ts";
import { readWords, type Words } from "./words.ts";

/** A finished exchange. Nothing in it is proven before {@link verifyBundle}. */
export interface Bundle {
  /** The artifact in the clear, as JSON text; `undefined` if the approver who wrote the bundle did not keep it. */
  readonly artifact: string | undefined;
  /** The decision as it was received. */
  readonly decision: string;
  readonly signer: {
    readonly approverId: string;
    readonly keys: string;
    /** `paired`, `vouched`, `recovered`, or `own` in a bundle that the signer itself has written. */
    readonly source: string;
    readonly vouchedBy: string | undefined;
    readonly since: string;
    /** The lock of the device that was pinned with the keys, as text. */
    readonly lock: string | undefined;
  };
  readonly words: Words;
  readonly enforcer: { readonly enforcerId: string; readonly keys: string };
  /** The payload of what was done, if it is not what was shown. */
  readonly payload: string | undefined;
  readonly receipt: Receipt;
}

/** The text is not a bundle. */
export class BundleError extends CountersignError {
  readonly code: "not-a-bundle" | "newer-bundle";
  readonly next: string;

  constructor(code: BundleError["code"], cause?: unknown) {
    super(
      code === "newer-bundle"
        ? "a newer program wrote this bundle"
        : "the text is not a bundle, or was not copied completely",
      { cause },
    );
    this.code = code;
    this.next = code === "newer-bundle" ? "Update this program." : "Export it again, and copy all of it.";
  }
}

/** Reads a bundle; nothing of it is verified. Throws {@link BundleError}. */
export function readBundle(json: string): Bundle {
  try {
    const members = new Members(parse(json));
    const version = members.required("version", count);
    if (version !== 1 && version !== 2) throw new BundleError("newer-bundle");
    const bundle = {
      artifact: members.optional("artifact", text),
      decision: members.required("decision", text),
      signer: members.required("signer", readSigner),
      words: members.required("words", (value) => readWords(sourceOf(value))),
      enforcer: members.required("enforcer", readEnforcer),
      payload: members.optional("payload", text),
      receipt: members.required("receipt", readReceipt),
    };
    members.close();
    // Version 1 has no locks, and version 2 is for them.
    if ((version === 2) !== (bundle.signer.lock !== undefined)) throw new BundleError("not-a-bundle");
    return bundle;
  } catch (cause) {
    throw cause instanceof BundleError ? cause : new BundleError("not-a-bundle", cause);
  }
}

function sourceOf(value: JsonValue): string {
  return new Members(value).object.source;
}

function readSigner(value: JsonValue, at: string): Bundle["signer"] {
  const members = new Members(value, at);
  const signer = {
    approverId: members.required("approverId", text),
    keys: members.required("keys", text),
    source: members.required("source", text),
    vouchedBy: members.optional("vouchedBy", text),
    since: members.required("since", text),
    lock: members.optional("lock", text),
  };
  members.close();
  return signer;
}

function readEnforcer(value: JsonValue, at: string): Bundle["enforcer"] {
  const members = new Members(value, at);
  const enforcer = { enforcerId: members.required("enforcerId", text), keys: members.required("keys", text) };
  members.close();
  return enforcer;
}

/** What an approver's device keeps of a request that it has answered. */
export interface Asked {
  /** The artifact in the clear, as JSON text. */
  readonly artifact: string;
  /** The words of the decision, as JSON text. */
  readonly words: string;
}

/**
 * What this device can prove of a decision of its own: that it signed the decision, and that the machine has signed a
 * receipt about it; and what was asked and said, if it still has that.
 */
export function ownBundle(
  decision: string,
  approver: Identity,
  machine: Pin,
  receipt: Receipt,
  asked?: Asked,
  lock?: LockKey,
): string {
  const signer = {
    approverId: approver.id,
    keys: formatBundle(approver.keys.bundle),
    source: "own",
    since: machine.since,
  };
  const head = {
    version: lock === undefined ? 1 : 2,
    ...(asked === undefined ? {} : { artifact: asked.artifact }),
    decision,
    signer: lock === undefined ? signer : { ...signer, lock: formatLock(lock) },
    words: asked === undefined ? {} : (JSON.parse(asked.words) as unknown),
    enforcer: { enforcerId: machine.party.id, keys: formatBundle(machine.bundle) },
  };
  return `${JSON.stringify(head).slice(0, -1)},"receipt":${receipt.source}}`;
}

/** Something that a bundle claims, in the order of docs/bundles.md. */
export const CLAIMS = {
  artifact: "The artifact has the hash that it says.",
  about: "The decision is about this artifact.",
  signature: "The decision is signed by the keys in the bundle.",
  approver: "These keys are those of this approver.",
  person: "The device has verified a person for exactly this decision, by the lock in the bundle.",
  lock: "This lock is that of the device.",
  words: "The words are those of the approver.",
  receipt: "The receipt is signed by the enforcer's keys in the bundle.",
  decision: "The receipt is about this decision.",
  enforcer: "These keys are those of this enforcer.",
  effect: "What was done is what the artifact says.",
  done: "The enforcer has done what the receipt says.",
} as const;

/** The name of a claim. */
export type BundleClaim = keyof typeof CLAIMS;

/** How certain a claim is. */
export type Certainty = "proven" | "unproven" | "wrong";

/** What a bundle proves, claim by claim. */
export interface BundleReport {
  readonly outcome: Outcome;
  readonly scope: Scope;
  /**
   * The two about a lock are there only if the decision has an assertion of one; that about the person also if it approves what
   * wanted one.
   */
  readonly findings: Readonly<Partial<Record<BundleClaim, Certainty>>>;
  /** Whether nothing in the bundle is wrong. That does not mean that everything is proven. */
  readonly isConsistent: boolean;
}

/** Verifies everything that can be verified. Without pins it is not known whose keys are in the bundle. */
export async function verifyBundle(bundle: Bundle, pins?: Pins): Promise<BundleReport> {
  const parts = readParts(bundle);
  const { decision, artifact, signer, enforcer } = parts;
  const ofArtifact = (certainty: (read: Artifact) => Certainty): Certainty =>
    artifact === undefined ? "unproven" : certainty(artifact);
  const isAbout = (read: Artifact): boolean =>
    decision.requestId === read.requestId &&
    decision.artifactHash === read.artifactHash &&
    decision.repoRef === read.repoRef;
  const { receipt } = bundle;
  const isOfDecision =
    decisionHash(decision) === receipt.decisionHash &&
    receipt.decisionNonce === decision.nonce &&
    receipt.requestId === decision.requestId;
  const isSigned = verifyDecisionSignature(decision, signer.signing) && decision.signerKeyId === fingerprint(signer);
  const isReceipt = isReceiptSignedBy(receipt, enforcer.signing) && receipt.enforcerId === bundle.enforcer.enforcerId;
  const isDemanded = decision.decision === "approve" && artifact !== undefined && needsPerson(artifact);
  // No machine accepts it without an assertion: nobody was verified for what wanted a verified person.
  const ofLock = hasAssertion(decision.policyHints)
    ? { person: await person(decision, parts.lock), lock: pinnedLock(pins, signer, parts.lock) }
    : isDemanded
      ? { person: "wrong" as const }
      : {};
  const findings: Partial<Record<BundleClaim, Certainty>> = {
    artifact: ofArtifact(() => proven(parts.isArtifactHashed)),
    about: ofArtifact((read) => proven(isAbout(read))),
    signature: proven(isSigned),
    approver: pinned(pins, signer, "approver", bundle.signer.approverId),
    ...ofLock,
    words: "unproven",
    receipt: proven(isReceipt),
    decision: proven(isOfDecision),
    enforcer: pinned(pins, enforcer, "enforcer", bundle.enforcer.enforcerId),
    effect: ofArtifact((read) => effect(bundle, read)),
    done: "unproven",
  };
  const isConsistent = !Object.values(findings).includes("wrong");
  return { outcome: decision.decision, scope: decision.scope, findings, isConsistent };
}

interface Parts {
  readonly decision: Decision;
  readonly artifact: Artifact | undefined;
  readonly isArtifactHashed: boolean;
  readonly signer: KeyBundle;
  readonly enforcer: KeyBundle;
  readonly lock: LockKey | undefined;
}

function readParts(bundle: Bundle): Parts {
  try {
    const decision = readDecision(bundle.decision);
    const [signer, enforcer] = [parseBundle(bundle.signer.keys), parseBundle(bundle.enforcer.keys)];
    const artifact = bundle.artifact === undefined ? undefined : parseArtifact(bundle.artifact);
    return {
      decision,
      artifact,
      isArtifactHashed: hasItsHash(parseObject(bundle.artifact ?? "{}"), "artifactHash"),
      signer,
      enforcer,
      lock: bundle.signer.lock === undefined ? undefined : parseLock(bundle.signer.lock),
    };
  } catch (cause) {
    throw new BundleError("not-a-bundle", cause);
  }
}

/** Whether the lock in the bundle has verified a person. A device whose lock nobody has pinned may say what it likes. */
async function person(decision: Decision, lock: LockKey | undefined): Promise<Certainty> {
  if (lock === undefined) return "unproven";
  try {
    await verifyLock(lock, parseObject(decision.source));
    return "proven";
  } catch (error) {
    if (error instanceof LockFault) return "wrong";
    throw error;
  }
}

/** Whether the pins say that this lock is that of the device. Another one may have taken its place since. */
function pinnedLock(pins: Pins | undefined, signer: KeyBundle, lock: LockKey | undefined): Certainty {
  const known = pins?.get(fingerprint(signer))?.lock;
  return known !== undefined && lock !== undefined && formatLock(known) === formatLock(lock) ? "proven" : "unproven";
}

/** Whether the receipt is about what was shown; or, under a pattern, about the payload in the bundle. */
function effect({ payload, receipt }: Bundle, artifact: Artifact): Certainty {
  const name = repoName(artifact) ?? "";
  const isNamed = (read: Artifact["payload"]): boolean =>
    effectHash(artifact.artifactType, read, name) === receipt.effectHash;
  if (payload === undefined) return proven(isNamed(artifact.payload));
  try {
    // The pattern is among the words, which are not proven.
    return isNamed(parseObject(payload)) ? "unproven" : "wrong";
  } catch {
    return "wrong";
  }
}

function proven(isTrue: boolean): Certainty {
  return isTrue ? "proven" : "wrong";
}

/** Whether the pins say that these keys are those of this party. A pin that was revoked since still says whose they were. */
function pinned(pins: Pins | undefined, bundle: KeyBundle, role: "approver" | "enforcer", id: string): Certainty {
  const pin = pins?.get(fingerprint(bundle));
  if (pin === undefined) return "unproven";
  return proven(pin.party.role === role && pin.party.id === id);
}
