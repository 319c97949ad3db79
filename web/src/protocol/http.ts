// Calls to a gateway over HTTP: bounded in time and size, retried under the same ids.

import { concat, fromUtf8 } from "./bytes.ts";
import { type Envelope, parseEnvelope } from "./envelope.ts";
import { CountersignError } from "./errors.ts";
import { type JsonObject, parseObject } from "./json.ts";
import { flag, Members, text } from "./members.ts";
import { Timestamp } from "./timestamp.ts";

/** An answer must arrive within this time. */
const CALL_MILLIS = 15_000;
/** The largest answer that is read. */
const MAX_ANSWER = 32 * 2 ** 20;
/** The largest refusal that is read. */
const MAX_REFUSAL = 64 * 2 ** 10;
/** The first pause before a retry, and the longest. */
const RETRY_MILLIS = { first: 200, longest: 10_000 };

/** Time, so that tests need not wait for it. */
export interface Clock {
  now(): Timestamp;
  /** Ends early, without an error, when the signal is aborted. */
  sleep(millis: number, signal?: AbortSignal): Promise<void>;
}

/** The clock of this machine. */
export const systemClock: Clock = {
  now: () => Timestamp.ofMillis(Date.now()),
  sleep: (millis, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) {
        resolve();
        return;
      }
      const end = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, millis);
      signal?.addEventListener("abort", end, { once: true });
    }),
};

/** Why a call has no usable answer. */
export type CallReason = "unreachable" | "refused" | "not-understood" | "stopped";

/** A call has no usable answer. */
export class CallError extends CountersignError {
  readonly code = "call";
  readonly reason: CallReason;
  /** The HTTP status of a refusal; 0 otherwise. */
  readonly status: number;
  /** The code of a refusal, `PROTO_ERR_…`; empty if the answer has none. */
  readonly gatewayCode: string;
  /** Whether the same call can succeed later. */
  readonly isRetryable: boolean;
  /** When to come back, in milliseconds, if the gateway said so. */
  readonly retryAfter: number | undefined;

  constructor(reason: CallReason, detail: string, refusal?: RefusedBy, cause?: unknown) {
    super(callMessage(reason, detail), { cause });
    this.reason = reason;
    this.status = refusal?.status ?? 0;
    this.gatewayCode = refusal?.code ?? "";
    this.isRetryable = reason === "unreachable" || refusal?.retryable === true;
    this.retryAfter = refusal?.retryAfter;
  }

  get next(): string {
    if (this.reason === "unreachable") return "Check the connection, and try again: the same call is safe to repeat.";
    if (this.reason === "stopped") return "Nothing; it was stopped here.";
    if (this.reason === "not-understood")
      return "Update this program. If it is up to date, ask whoever runs the gateway.";
    return NEXT_BY_STATUS[this.status] ?? (this.isRetryable ? "Try again in a moment." : "Look at what was sent.");
  }
}

const NEXT_BY_STATUS: Readonly<Record<number, string>> = {
  401: "This device is not known to the gateway any more. Join again with a new invitation.",
  403: "This device may not do that. Ask whoever runs the gateway.",
  404: "It is not there, or not any more.",
  409: "It was decided, withdrawn or expired before. Look at its state.",
  413: "It is too large. Send less.",
  429: "Too many calls. Wait a moment.",
};

function callMessage(reason: CallReason, detail: string): string {
  if (reason === "unreachable") return `the gateway can't be reached: ${detail}`;
  if (reason === "refused") return `the gateway refused: ${detail}`;
  if (reason === "stopped") return "the call was stopped";
  return `the gateway answered something that is not understood: ${detail}`;
}

interface RefusedBy {
  readonly status: number;
  readonly code: string;
  readonly retryable: boolean;
  readonly retryAfter: number | undefined;
}

/** One call. Repeating it is safe: the ids in its body make it idempotent. */
export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: string;
  readonly idempotencyKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer with a status of success. */
export class Answer {
  readonly status: number;
  readonly body: Uint8Array;

  constructor(status: number, body: Uint8Array) {
    this.status = status;
    this.body = body;
  }

  /** The object in the body. */
  object(): JsonObject {
    return understood(() => parseObject(this.body));
  }

  /** The envelope in the body. */
  envelope(): Envelope {
    return understood(() => parseEnvelope(this.body));
  }

  /** Reads the members of the body. */
  read<T>(read: (members: Members) => T): T {
    return understood(() => read(new Members(this.object())));
  }
}

/** Runs a reader of an answer; what it can't read is `not-understood`. */
export function understood<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const isFormat = cause instanceof CountersignError && !(cause instanceof CallError);
    throw isFormat ? new CallError("not-understood", cause.message, undefined, cause) : cause;
  }
}

/** A path segment, percent-encoded: ids may contain anything. A dot too: one or two of them have a meaning of their own. */
export function segment(id: string): string {
  return encodeURIComponent(id).replace(
    /[.!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** How the gateway is called. */
export interface HttpOptions {
  /** The address of the gateway, without a slash at its end. */
  readonly gateway: string;
  /** The API key; absent to join. It is sent in a header, never in an address. */
  readonly credential?: string;
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
}

/** A gateway and the credential that is used with it. */
export class Http {
  readonly gateway: string;
  readonly clock: Clock;
  readonly #credential: string | undefined;
  readonly #fetch: typeof fetch;

  constructor(options: HttpOptions) {
    this.gateway = options.gateway;
    this.clock = options.clock ?? systemClock;
    this.#credential = options.credential;
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
  }

  /** Calls once. Throws {@link CallError}. */
  async send(call: Call, signal?: AbortSignal): Promise<Answer> {
    const limit = new AbortController();
    const done = new AbortController();
    const stop = (): void => limit.abort();
    signal?.addEventListener("abort", stop, { once: true });
    void this.clock.sleep(CALL_MILLIS, done.signal).then(stop);
    try {
      const response = await this.#request(call, limit.signal);
      const body = await readAll(response, response.ok ? MAX_ANSWER : MAX_REFUSAL);
      if (!response.ok) throw refused(response, body ?? new Uint8Array());
      if (body === undefined) throw new CallError("not-understood", "it is too large");
      return new Answer(response.status, body);
    } catch (cause) {
      if (cause instanceof CallError) throw cause;
      if (signal?.aborted === true) throw new CallError("stopped", "", undefined, cause);
      throw new CallError(
        "unreachable",
        limit.signal.aborted ? "no answer in time" : reasonOf(cause),
        undefined,
        cause,
      );
    } finally {
      done.abort();
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Calls until there is an answer that is final, or the time has passed. The last error is thrown then. */
  async sendUntil(call: Call, millis = 30_000, signal?: AbortSignal): Promise<Answer> {
    const deadline = this.clock.now().plus(millis);
    for (let delay = RETRY_MILLIS.first; ; delay = Math.min(RETRY_MILLIS.longest, delay * 2)) {
      try {
        return await this.send(call, signal);
      } catch (error) {
        if (!(error instanceof CallError) || !error.isRetryable) throw error;
        const pause = Math.max(error.retryAfter ?? 0, jittered(delay));
        if (!this.clock.now().plus(pause).isBefore(deadline)) throw error;
        await this.clock.sleep(pause, signal);
        if (signal?.aborted === true) throw new CallError("stopped", "", undefined, error);
      }
    }
  }

  /** Opens an answer that is held, and returns when its head is there. Throws {@link CallError}. */
  async open(call: Call, signal: AbortSignal): Promise<Response> {
    try {
      const response = await this.#request(call, signal);
      if (response.ok) return response;
      throw refused(response, (await readAll(response, MAX_REFUSAL)) ?? new Uint8Array());
    } catch (cause) {
      if (cause instanceof CallError) throw cause;
      throw new CallError(signal.aborted ? "stopped" : "unreachable", reasonOf(cause), undefined, cause);
    }
  }

  #request(call: Call, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { ...call.headers };
    if (this.#credential !== undefined) headers["Authorization"] = `Bearer ${this.#credential}`;
    if (call.idempotencyKey !== undefined) headers["Idempotency-Key"] = call.idempotencyKey;
    if (call.body !== undefined) headers["Content-Type"] = mediaType(call.path);
    // A redirect is an error: a credential is for one gateway.
    return this.#fetch(`${this.gateway}${call.path}`, {
      method: call.method,
      headers,
      ...(call.body === undefined ? {} : { body: call.body }),
      signal,
      redirect: "error",
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
    });
  }
}

/** Envelopes have the protocol's own type; pairing, and what is outside of the protocol, is plain JSON. */
function mediaType(path: string): string {
  const hasEnvelope = path.startsWith("/v1/") && !path.startsWith("/v1/pairing/");
  return hasEnvelope ? "application/proto+json" : "application/json";
}

/** Half to all of it, so that many clients do not come back at the same moment. */
export function jittered(millis: number): number {
  const [byte = 0] = crypto.getRandomValues(new Uint8Array(1));
  return Math.round(millis / 2 + (millis / 2) * (byte / 256));
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : "no connection";
}

/** All of a body; `undefined` if it is larger than `max`. */
async function readAll(response: Response, max: number): Promise<Uint8Array | undefined> {
  const reader = response.body?.getReader();
  if (reader === undefined) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return concat(...chunks);
    length += value.length;
    if (length > max) {
      await reader.cancel().catch(() => undefined);
      return undefined;
    }
    chunks.push(value);
  }
}

/** An error in either form: an envelope, or the bare object. */
function refused(response: Response, body: Uint8Array): CallError {
  const found = refusalOf(body);
  const seconds = Number(response.headers.get("Retry-After") ?? "");
  const isSeconds = response.headers.get("Retry-After") !== null && Number.isInteger(seconds) && seconds >= 0;
  const { status } = response;
  const code = found?.code ?? "";
  // A proxy's own error has no code of ours.
  const retryable = found?.retryable ?? status >= 500;
  const retryAfter = isSeconds ? Math.min(seconds, 60) * 1_000 : undefined;
  return new CallError("refused", code === "" ? `status ${status}` : `${code} (${status})`, {
    status,
    code,
    retryable,
    retryAfter,
  });
}

function refusalOf(body: Uint8Array): { code: string; retryable: boolean } | undefined {
  try {
    const object = parseObject(fromUtf8(body) ?? "");
    const inner = object.members.get("body");
    const members = new Members(inner ?? object);
    return { code: members.required("code", text), retryable: members.required("retryable", flag) };
  } catch {
    return undefined;
  }
}
