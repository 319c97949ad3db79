// What a person has answered on any of their devices, as the machine that asked has it (docs/history.md). It is the machine's
// word: another device's signature is not in it.

import { type Bytes, utf8 } from "./bytes.ts";
import type { Outcome, Scope } from "./decision.ts";
import { CountersignError, FormatError } from "./errors.ts";
import type { JsonValue } from "./json.ts";
import { id, list, Members, one, type Read, text, time, word } from "./members.ts";
import type { Pin } from "./pins.ts";
import { type ReceiptOutcome, readOutcome } from "./receipt.ts";
import { namedSession, type OpenedSnapshot } from "./session.ts";
import type { Timestamp } from "./timestamp.ts";

/** One answer of a person. */
export interface RememberedAnswer {
  readonly requestId: string;
  /** When the machine was done with it, by its clock. */
  readonly at: Timestamp;
  /** The fingerprint of the device that answered. */
  readonly device: string;
  readonly decision: Outcome;
  readonly scope: Scope;
  /** What it does, in one sentence. */
  readonly sentence: string;
  /** What was asked, in one line. */
  readonly headline: string;
  readonly reason: string | undefined;
  /** The caption of the answer that was chosen. */
  readonly action: string | undefined;
  /** What the person has made of it, if they changed it. */
  readonly change: string | undefined;
  /** What the machine did. */
  readonly outcome: ReceiptOutcome;
}

/** What a machine remembers is not shown: it is of another machine or person, of another version, or not of this format. */
export class HistoryError extends CountersignError {
  readonly code = "history";
  readonly next = "Update this page and the machine. The answers that this device gave are still listed.";

  constructor(cause?: unknown) {
    super("what the machine remembers of your answers is not in a format that is known here", { cause });
  }
}

/** The UUID of version 5 of `countersign history v1` in the namespace for URLs. */
const NAMESPACE: Bytes = Uint8Array.of(
  0xb7,
  0x91,
  0x4e,
  0x73,
  0x18,
  0xfc,
  0x54,
  0x90,
  0xa1,
  0x3a,
  0x95,
  0x35,
  0xd0,
  0xcf,
  0x89,
  0x0a,
);

/** The session that has what the machine with these keys remembers of a person. */
export function historySession(machine: string, approver: string): string {
  return namedSession(NAMESPACE, utf8(`${machine}/${approver}`));
}

function readAnswer(value: JsonValue, at: string): RememberedAnswer {
  const members = new Members(value, at);
  const answer = {
    requestId: members.required("requestId", id),
    at: members.required("at", time),
    device: members.required("device", brief),
    decision: members.required("decision", word(["approve", "reject"])),
    scope: members.required("scope", word(["once", "timebox", "session"])),
    sentence: members.required("sentence", brief),
    headline: members.required("headline", brief),
    reason: members.optional("reason", brief),
    action: members.optional("action", brief),
    change: members.optional("change", brief),
    outcome: members.required("outcome", readOutcome),
  };
  members.close();
  return answer;
}

/** So many answers, and texts of so many characters, are what a machine writes at most. */
const [MOST, LONGEST] = [50, 201];

/** A text that is as long as a machine writes it. */
const brief: Read<string> = (value, at) => {
  const read = text(value, at);
  if (read.length <= 2 * LONGEST && [...read].length <= LONGEST) return read;
  throw new FormatError(at, `has more than ${LONGEST} characters`);
};

/** The answers in a snapshot that was opened, newest first. Throws {@link HistoryError}. */
export function openHistory(snapshot: OpenedSnapshot, machine: Pin, approver: string): RememberedAnswer[] {
  try {
    const members = new Members(snapshot.payload);
    members.required("v", one);
    const approverId = members.required("approverId", id);
    const answers = members.required("answers", list(readAnswer));
    members.close();
    const isOwn =
      snapshot.sentBy.fingerprint === machine.fingerprint &&
      snapshot.sessionId === historySession(machine.fingerprint, approver) &&
      approverId === approver &&
      answers.length <= MOST;
    if (isOwn) return answers;
  } catch (cause) {
    throw new HistoryError(cause);
  }
  throw new HistoryError();
}
