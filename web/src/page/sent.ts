// What became of this device's decisions: signed, accepted, delivered, and what the machine did.

import type { Database } from "../keys/database.ts";
import {
  type Action,
  type Approver,
  CallError,
  type Choice,
  decisionHash,
  type Edit,
  type ExchangeStatus,
  headline,
  type OpenedRequest,
  type Outcome,
  type Payload,
  type Pins,
  ReceiptError,
  type ReceiptOutcome,
  readDecision,
  type Scope,
  type SentDecision,
  SnapshotError,
  sentDecision,
  sentenceOf,
  type Timestamp,
} from "../protocol/index.ts";
import { notices } from "../texts/notices.ts";
import { isAsked } from "./review/question.ts";

/** A decision of this device, as it is kept. Times are RFC 3339, by the clock that the text names. */
export interface SentRecord {
  readonly requestId: string;
  readonly enforcerId: string;
  /** The decision as JSON text. */
  readonly source: string;
  /** What was asked, in one line. */
  readonly headline: string;
  /** What it does, in one sentence. */
  readonly sentence?: string;
  /** The session that it belongs to. */
  readonly session?: string;
  readonly outcome: Outcome;
  readonly scope: Scope;
  readonly reason: string | undefined;
  /** What was changed: a rejection of the request as it was, of which the machine makes another one. */
  readonly edit?: Edit;
  /** The caption of the action that was chosen. */
  readonly action: string | undefined;
  /** Whether a question was answered: with the action, else with the words. */
  readonly isQuestion?: boolean;
  /** What was shown, as it was signed. */
  readonly shown: string | undefined;
  readonly expiresAt: string;
  readonly signedAt: string;
  readonly acceptedAt?: string;
  /** It does not count, or it is not known whether the gateway has it (`unreachable`). */
  readonly failed?: {
    readonly kind: "answered" | "expired" | "withdrawn" | "cancelled" | "refused" | "unreachable";
    readonly text: string;
  };
  readonly deliveredAt?: string;
  readonly receipt?: { readonly outcome: ReceiptOutcome; readonly at: string };
  /** Something came in place of a receipt, and failed a check. */
  readonly receiptFailed?: string;
}

/** What a list says of an answer: one of this device, or one that a machine remembers. */
export type Answered = Omit<SentRecord, "source" | "shown" | "expiresAt" | "session"> & {
  /** On which other device it was given, in words. */
  readonly where?: string;
};

/** The record of a decision that was signed at this time. */
export function newRecord(
  request: OpenedRequest,
  payload: Payload | undefined,
  { requestId, enforcerId, source }: SentDecision,
  { outcome, scope, words }: Choice,
  now: Timestamp,
  action?: Action,
): SentRecord {
  return {
    requestId,
    enforcerId,
    source,
    headline: payload === undefined ? "" : headline(payload),
    ...(payload === undefined ? {} : { sentence: sentenceOf(payload) }),
    ...(payload !== undefined && isAsked(request, payload) ? { isQuestion: true } : {}),
    ...(request.session === undefined ? {} : { session: request.session }),
    outcome,
    scope,
    reason: words.reason,
    ...(words.edit === undefined ? {} : { edit: words.edit }),
    action: action?.caption,
    shown: words.shown,
    expiresAt: `${request.expiresAt}`,
    signedAt: `${now}`,
  };
}

/** Keeps a record, in one transaction. Throws, and keeps nothing, if this device has signed another decision about the request. */
export function keepRecord(database: Database, record: SentRecord): Promise<SentRecord> {
  return database.changeSent(record.requestId, (before) => {
    const known = before as SentRecord | undefined;
    if (known !== undefined && known.source !== record.source) throw new Error(notices.answeredBefore);
    return known === undefined ? record : merged(known, record);
  });
}

/** The answer to a question, as the person gave it; `undefined` if it was none, or was not answered. */
export function answerOf({ isQuestion, outcome, action, reason }: Answered): string | undefined {
  return isQuestion === true && outcome === "approve" ? (action ?? reason) : undefined;
}

/** The change by this device that a request came from, as its machine says and this device knows; `undefined` if it is none. */
export function changeBehind(
  sent: ReadonlyMap<string, SentRecord>,
  { isEdited, supersedes, enforcerId }: OpenedRequest,
): SentRecord | undefined {
  const record = isEdited ? sent.get(supersedes ?? "") : undefined;
  return record?.edit !== undefined && record.enforcerId === enforcerId ? record : undefined;
}

/** The receipt is looked for for half an hour. */
const WATCH_MILLIS = 30 * 60_000;

/** Whether nothing more is expected. */
export function isSettled(record: SentRecord): boolean {
  return record.receipt !== undefined || (record.failed !== undefined && record.failed.kind !== "unreachable");
}

/** Whether it is on its way to the gateway: kept, and neither accepted nor failed. */
export function isBeingSent(record: SentRecord): boolean {
  return record.acceptedAt === undefined && record.failed === undefined;
}

/** A decision that was signed, and whose page was closed before it was known whether it arrived: it can be sent again. */
export function interrupted(record: SentRecord): SentRecord {
  return isBeingSent(record) ? { ...record, failed: { kind: "unreachable", text: "" } } : record;
}

/** What is known together with what was just seen, which may be older. That it was accepted counts more than a failure. */
export function merged(known: SentRecord, seen: SentRecord): SentRecord {
  const { failed: before, ...knownFacts } = known;
  const { failed: after, ...seenFacts } = seen;
  const { receiptFailed, ...facts } = { ...seenFacts, ...knownFacts };
  if (facts.receipt !== undefined) return facts;
  const failed = isSettled(known) ? before : (after ?? before);
  return {
    ...facts,
    ...(failed === undefined || facts.acceptedAt !== undefined ? {} : { failed }),
    ...(receiptFailed === undefined ? {} : { receiptFailed }),
  };
}

/** Sends a decision. Returns what became of it. */
export async function submit(approver: Approver, record: SentRecord): Promise<SentRecord> {
  const { failed: _, ...rest } = record;
  try {
    await approver.sendDecision(sentDecision(record.source, record.enforcerId));
    return { ...rest, acceptedAt: now(approver) };
  } catch (error) {
    return { ...rest, failed: failure(error) };
  }
}

function failure(error: unknown): NonNullable<SentRecord["failed"]> {
  if (!(error instanceof CallError))
    return { kind: "unreachable", text: error instanceof Error ? error.message : String(error) };
  const text = error.message;
  if (error.gatewayCode === "AlreadyDecidedConflict") return { kind: "answered", text };
  if (error.gatewayCode === "PROTO_ERR_EXPIRED") return { kind: "expired", text };
  if (error.status === 404 || error.gatewayCode === "PROTO_ERR_STATE") return { kind: "withdrawn", text };
  return { kind: error.reason === "refused" && !error.isRetryable ? "refused" : "unreachable", text };
}

function now(approver: Approver): string {
  return `${approver.http.clock.now()}`;
}

/** Asks once what became of a decision; the same record if there is nothing new. */
export async function look(approver: Approver, pins: Pins, record: SentRecord): Promise<SentRecord> {
  let seen = record;
  if (seen.deliveredAt === undefined) seen = withStatus(seen, await approver.status(record.requestId), now(approver));
  if (isSettled(seen)) return seen;
  try {
    const receipt = await approver.receipt(sentDecision(record.source, record.enforcerId), 1, pins);
    if (receipt === undefined) return seen;
    const { receiptFailed: _, failed: __, ...rest } = seen;
    return { acceptedAt: now(approver), ...rest, receipt: { outcome: receipt.outcome, at: receipt.at } };
  } catch (error) {
    if (!(error instanceof ReceiptError || error instanceof SnapshotError)) throw error;
    return seen.receiptFailed === error.message ? seen : { ...seen, receiptFailed: error.message };
  }
}

/** What the gateway's word on the exchange says about a decision of this device. */
function withStatus(record: SentRecord, { state, decision }: ExchangeStatus, at: string): SentRecord {
  const { failed: _, ...rest } = record;
  if (state === "decided" || state === "delivered") {
    const isAccepted = record.acceptedAt !== undefined;
    // The gateway does not keep decisions for ever.
    if (!isAccepted && decision === undefined) return record;
    if (!isAccepted && decision !== undefined && hashOf(decision.source) !== hashOf(record.source))
      return { ...rest, failed: { kind: "answered", text: "" } };
    const accepted = isAccepted ? record : { ...rest, acceptedAt: at };
    return state === "delivered" ? { ...accepted, deliveredAt: at } : accepted;
  }
  if (record.acceptedAt !== undefined || state === "pendingApproval") return record;
  return { ...rest, failed: { kind: state, text: "" } };
}

function hashOf(source: string): string {
  return decisionHash(readDecision(source));
}

/**
 * Asks until the machine has reported, for half an hour from the signing on; whether a decision has arrived is asked at least
 * once. `report` gets each change.
 */
export async function watch(
  approver: Approver,
  pins: () => Pins,
  record: SentRecord,
  report: (record: SentRecord) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = approver.http;
  let [current, pause, isDue] = [record, 700, record.acceptedAt === undefined];
  const end = Date.parse(record.signedAt) + WATCH_MILLIS;
  while (!signal.aborted && !isSettled(current) && (isDue || clock.now().millis < end)) {
    await clock.sleep(pause, signal);
    [pause, isDue] = [Math.min(pause * 1.3, 15_000), false];
    const seen = await look(approver, pins(), current).catch(() => current);
    if (signal.aborted) return;
    if (seen !== current) await report(seen);
    current = seen;
  }
}
