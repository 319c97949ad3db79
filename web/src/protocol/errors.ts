// Errors: each is typed, says what happened, and what to do next.

/** An error of this library. `message` says what happened, `next` what a person can do. */
export abstract class CountersignError extends Error {
  /** Identifies the error in programs; it does not change. */
  abstract readonly code: string;
  /** What to do next, in one sentence for a person. */
  abstract readonly next: string;

  override get name(): string {
    return this.constructor.name;
  }
}

/** Why a text is not strict JSON. */
export type JsonFault =
  | "not-utf8"
  | "byte-order-mark"
  | "syntax"
  | "duplicate-member"
  | "lone-surrogate"
  | "too-deep"
  | "number-out-of-range";

const JSON_FAULTS: Record<JsonFault, string> = {
  "not-utf8": "the text is not UTF-8",
  "byte-order-mark": "the text begins with a byte order mark",
  syntax: "the text is not JSON",
  "duplicate-member": "an object has a member twice",
  "lone-surrogate": "a string has half of a character",
  "too-deep": "there are more than 128 levels of arrays and objects",
  "number-out-of-range": "a number is too large",
};

/** The text is not JSON that every program reads in the same way. */
export class JsonError extends CountersignError {
  readonly code = "json";
  readonly next = "Do not use this text. If the gateway sent it, report it to whoever runs the gateway.";
  readonly fault: JsonFault;
  /** Where in the text, in UTF-16 code units. */
  readonly at: number;

  constructor(fault: JsonFault, at: number) {
    super(`${JSON_FAULTS[fault]} (at ${at})`);
    this.fault = fault;
    this.at = at;
  }
}

/** The JSON is not the object that was expected. */
export class FormatError extends CountersignError {
  readonly code = "format";
  readonly next = "Do not use this message. Update this program if the other side is newer.";
  /** The path of the member at fault; empty for the whole value. */
  readonly member: string;
  /** The rule that it breaks. */
  readonly problem: string;

  constructor(member: string, problem: string) {
    super(member === "" ? problem : `${member} ${problem}`);
    this.member = member;
    this.problem = problem;
  }
}

/** A number can't be hashed or signed, because programs would round it differently. */
export class UnsafeNumberError extends CountersignError {
  readonly code = "unsafe-number";
  readonly next = "Send the number as a string.";

  constructor(literal: string) {
    super(`the number ${literal.slice(0, 40)} is outside of ±(2^53−1)`);
  }
}

/** The hash in an object is not that of the object. */
export class HashError extends CountersignError {
  readonly code = "hash-mismatch";
  readonly next = "Do not use this message: it was changed.";

  constructor(member: string) {
    super(`${member} is not the hash of this object`);
  }
}

/** A reason with its words: what happened, and what to do next. */
export type Explained<Reason extends string> = Record<Reason, readonly [message: string, next: string]>;

/** An error with a reason from a closed list. */
export abstract class ReasonError<Reason extends string> extends CountersignError {
  readonly reason: Reason;
  readonly next: string;

  constructor(reason: Reason, words: Explained<Reason>, detail = "") {
    const [message, next] = words[reason];
    super(detail === "" ? message : `${message}: ${detail}`);
    this.reason = reason;
    this.next = next;
  }
}
