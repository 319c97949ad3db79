// What an enforcer did with a decision: signed by it, and checked by the approver who decided (docs/receipts.md).

import * as base64url from "./base64url.ts";
import { type Bytes, concat, utf8 } from "./bytes.ts";
import { canonicalWithout } from "./canonical.ts";
import type { Signer } from "./device.ts";
import { verifyStrict } from "./ed25519.ts";
import { type Explained, FormatError, ReasonError } from "./errors.ts";
import { JsonNumber, type JsonObject, type JsonValue, parseObject } from "./json.ts";
import { Members, one, text, word } from "./members.ts";
import type { SentDecision } from "./reply.ts";
import { namedSession, type OpenedSnapshot } from "./session.ts";

/** What became of a decision. */
export type ReceiptOutcome =
  /** The decision was obeyed: what was approved was done, what was rejected was not. */
  | { outcome: "applied"; exitStatus?: number | undefined }
  /** It was approved, and the enforcer did not do it all the same. */
  | { outcome: "refused"; reason: string }
  /** What would have been done was not any more what was shown, so it was not done. */
  | { outcome: "drifted" }
  /** The decision came after its time, so it was not done. */
  | { outcome: "tooLate" };

/** What an enforcer says that it did. It proves that the enforcer says it, not that it is true. */
export interface Receipt {
  readonly requestId: string;
  /** The number of the use, from 1. */
  readonly use: number;
  readonly decisionHash: string;
  readonly decisionNonce: string;
  readonly effectHash: string;
  readonly enforcerId: string;
  /** When, by the enforcer's clock, in RFC 3339. */
  readonly at: string;
  readonly outcome: ReceiptOutcome;
  readonly signature: string;
  /** The receipt as it was written. */
  readonly source: string;
}

type ReceiptReason = "malformed" | "other-enforcer" | "signature" | "other-request" | "other-use" | "other-decision";
const NEXT = "What was done is not known. Look at the machine itself.";
const RECEIPT_REASONS: Explained<ReceiptReason> = {
  malformed: ["the receipt is not in a format that is known here", NEXT],
  "other-enforcer": ["the receipt is of another machine than asked", NEXT],
  signature: ["the signature of the receipt does not verify", NEXT],
  "other-request": ["the receipt is about another request", NEXT],
  "other-use": ["the receipt is about another use of the decision", NEXT],
  "other-decision": ["the receipt is about another decision", NEXT],
};

/** A receipt is not accepted. */
export class ReceiptError extends ReasonError<ReceiptReason> {
  readonly code = "receipt";

  constructor(reason: ReceiptReason) {
    super(reason, RECEIPT_REASONS);
  }
}

/** The UUID of version 5 of `countersign receipt v1` in the namespace for URLs. */
const NAMESPACE = Uint8Array.of(
  0x27,
  0x3a,
  0x0f,
  9,
  0x8e,
  0x0d,
  0x50,
  0x6d,
  0xa9,
  0xef,
  0x1d,
  0x4c,
  0xb5,
  0x78,
  0x7b,
  0xdc,
);

/** The session that has the receipt of one use: a UUID of version 5, so that both ends know it. */
export function receiptSession(requestId: string, use: number): string {
  return namedSession(NAMESPACE, utf8(`${requestId}/${use}`));
}

/** Reads a receipt; nothing of it is verified. Throws a `FormatError`. */
export function readReceipt(value: JsonValue, at = ""): Receipt {
  const members = new Members(value, at);
  members.required("v", one);
  const receipt = {
    requestId: members.required("requestId", text),
    use: members.required("use", integer(0, Number.MAX_SAFE_INTEGER)),
    decisionHash: members.required("decisionHash", text),
    decisionNonce: members.required("decisionNonce", text),
    effectHash: members.required("effectHash", text),
    enforcerId: members.required("enforcerId", text),
    at: members.required("at", text),
    outcome: members.required("outcome", readOutcome),
    signature: members.required("signature", text),
    source: members.object.source,
  };
  members.close();
  return receipt;
}

function integer(min: number, max: number) {
  return (value: JsonValue, at: string): number => {
    const isInteger = value instanceof JsonNumber && /^-?\d+$/.test(value.literal);
    if (isInteger && value.value >= min && value.value <= max) return value.value;
    throw new FormatError(at, `is not an integer from ${min} to ${max}`);
  };
}

/** Reads what became of a decision. Throws a `FormatError`. */
export function readOutcome(value: JsonValue, at: string): ReceiptOutcome {
  const members = new Members(value, at);
  const outcome = members.required("outcome", word(["applied", "refused", "drifted", "tooLate"]));
  let read: ReceiptOutcome;
  if (outcome === "applied") {
    read = { outcome, exitStatus: members.optional("exitStatus", integer(-(2 ** 31), 2 ** 31 - 1)) };
  } else if (outcome === "refused") {
    read = { outcome, reason: members.required("reason", text) };
  } else {
    read = { outcome };
  }
  members.close();
  return read;
}

function signedBytes(receipt: JsonObject): Bytes {
  return concat(utf8("countersign receipt v1\0"), canonicalWithout(receipt, "signature"));
}

/** Whether this Ed25519 key has signed the receipt. Whose key it is, and what it is about, is not checked. */
export function isReceiptSignedBy(receipt: Receipt, publicKey: Uint8Array): boolean {
  const signature = base64url.decodeExactly(receipt.signature, 64);
  return signature !== undefined && verifyStrict(publicKey, signedBytes(parseObject(receipt.source)), signature);
}

/** Signs what was done with a decision. Returns the receipt as JSON text. */
export async function signReceipt(signer: Signer, receipt: Omit<Receipt, "signature" | "source">): Promise<string> {
  const unsigned = { v: 1, ...receipt };
  const signature = await signer.sign(signedBytes(parseObject(JSON.stringify(unsigned))));
  return JSON.stringify({ ...unsigned, signature: base64url.encode(signature) });
}

/**
 * The receipt in a snapshot that was opened, checked in this order: shape, enforcer, signature, request, use, decision.
 * Throws {@link ReceiptError}.
 */
export function openReceipt(snapshot: OpenedSnapshot, sent: SentDecision, use: number): Receipt {
  const receipt = readOrRefuse(snapshot.payload);
  const { party, bundle } = snapshot.sentBy;
  const isOfEnforcer =
    party.role === "enforcer" && party.id === sent.enforcerId && receipt.enforcerId === sent.enforcerId;
  const checks: readonly (readonly [ReceiptReason, () => boolean])[] = [
    ["other-enforcer", () => isOfEnforcer],
    ["signature", () => isReceiptSignedBy(receipt, bundle.signing)],
    ["other-request", () => receipt.requestId === sent.requestId],
    ["other-use", () => receipt.use === use],
    ["other-decision", () => receipt.decisionHash === sent.hash && receipt.decisionNonce === sent.nonce],
  ];
  for (const [reason, isRight] of checks) {
    if (!isRight()) throw new ReceiptError(reason);
  }
  return receipt;
}

function readOrRefuse(payload: JsonObject): Receipt {
  try {
    return readReceipt(payload);
  } catch {
    throw new ReceiptError("malformed");
  }
}
