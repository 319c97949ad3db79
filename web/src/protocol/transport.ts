// One connection on which messages arrive from the gateway: a WebSocket by ticket, or server-sent events by `fetch`.

import type { Approver } from "./approver.ts";
import { fromUtf8 } from "./bytes.ts";
import { CallError, type Clock, segment } from "./http.ts";
import { EventReader, StreamError } from "./sse.ts";

/** The largest message that is read: a session's snapshot, with room for what the gateway adds. */
export const MAX_MESSAGE = 7_187_116 + 65_536;

/** A connection must be opened within this time. */
const OPEN_MILLIS = 15_000;

/** A stream that pings is dead after three pauses between pings without a word, and at least this long. Ours pings every 15 s. */
const SILENCE_MILLIS = 45_000;

/** How messages come from the gateway. `poll` asks again and again. */
export type Transport = "websocket" | "sse" | "poll";

/** What a connection reports. */
export interface Listener {
  /** A message, and of a stream the position after it. */
  onMessage(text: string, position: string | undefined): void;
}

/** An open connection. */
export interface Connection {
  /** Sends a message; `false` if this connection can't. */
  send(text: string): boolean;
  /** Ends it from here. */
  close(): void;
  /** Why it has ended, in words for a person. */
  readonly ended: Promise<string>;
}

/** The gateway gives no tickets, so a browser can't open a WebSocket: tickets are ours, and not of the specification. */
export class NoTicketsError extends StreamError {}

/** How a gateway answers a call that it does not know. If it means the credential, the next transport is refused too. */
const NO_TICKETS: readonly number[] = [403, 404, 405, 501];

/** What a client says of itself. The gateway then sends an `exchange.status` when a request has ended elsewhere. */
const HELLO = JSON.stringify({
  msgType: "hello",
  capabilities: { push: true, sse: true, poll: true, "org.countersign.status": true },
});

/** The class of WebSockets; tests and old versions of Node have another one. */
export type WebSocketClass = new (url: string, protocols: string[]) => WebSocket;

/** Opens a WebSocket with a ticket, which stands in the subprotocol and never in the address. */
export async function openSocket(
  approver: Approver,
  listener: Listener,
  signal: AbortSignal,
  socketClass: WebSocketClass | undefined = typeof WebSocket === "undefined" ? undefined : WebSocket,
): Promise<Connection> {
  if (socketClass === undefined) throw new StreamError("there are no WebSockets here");
  const ticket = await approver.ticket(signal).catch((error: unknown) => {
    const isAbsent = error instanceof CallError && NO_TICKETS.includes(error.status);
    throw isAbsent ? new NoTicketsError("this gateway has no tickets for WebSockets") : error;
  });
  const { gateway, clock } = approver.http;
  const url = `${gateway.replace(/^http/, "ws")}/v1/ws?role=approver&id=${segment(approver.identity.id)}`;
  const socket = new socketClass(url, [`ticket.${ticket}`]);
  socket.binaryType = "arraybuffer";
  const close = (): void => socket.close();
  signal.addEventListener("abort", close, { once: true });
  const ended = new Promise<string>((resolve) => {
    socket.onclose = ({ code, reason }) => {
      signal.removeEventListener("abort", close);
      resolve(reason === "" ? `the connection was closed (${code})` : "the gateway has closed the connection");
    };
  });
  socket.onmessage = ({ data }) => {
    const text =
      typeof data === "string" ? data : data instanceof ArrayBuffer ? fromUtf8(new Uint8Array(data)) : undefined;
    if (text === undefined || text.length > MAX_MESSAGE) socket.close();
    else listener.onMessage(text, undefined);
  };
  const opened = new Promise<boolean>((resolve) => {
    socket.onopen = () => resolve(true);
    // Some versions of Node report a connection that fails as an error, and never as closed.
    socket.onerror = () => resolve(false);
    void ended.then(() => resolve(false));
    void clock.sleep(OPEN_MILLIS, signal).then(() => resolve(false));
  });
  if (!(await opened)) {
    socket.close();
    throw new StreamError("no WebSocket could be opened");
  }
  socket.send(HELLO);
  const send = (text: string): boolean => {
    const isOpen = socket.readyState === 1;
    if (isOpen) socket.send(text);
    return isOpen;
  };
  return { send, close, ended };
}

/** Opens a stream of events, with the credential in a header. It carries requests only. */
export async function openStream(
  approver: Approver,
  listener: Listener,
  signal: AbortSignal,
  last: string | undefined,
): Promise<Connection> {
  const own = new AbortController();
  const stop = (): void => own.abort();
  signal.addEventListener("abort", stop, { once: true });
  const path = `/v1/sse/approvers/${segment(approver.identity.id)}`;
  const headers = { Accept: "text/event-stream", ...(last === undefined ? {} : { "Last-Event-ID": last }) };
  const opened = new AbortController();
  void approver.http.clock.sleep(OPEN_MILLIS, opened.signal).then(() => opened.signal.aborted || own.abort());
  try {
    const response = await approver.http.open({ method: "GET", path, headers }, own.signal);
    if (!(response.headers.get("Content-Type") ?? "").startsWith("text/event-stream"))
      throw new CallError("not-understood", "it is no stream of events");
    const ended = readStream(response, listener, own, approver).finally(() =>
      signal.removeEventListener("abort", stop),
    );
    return { send: () => false, close: stop, ended };
  } catch (error) {
    // Something between holds streams back; other calls may pass.
    const isHeldBack = own.signal.aborted && !signal.aborted;
    signal.removeEventListener("abort", stop);
    own.abort();
    throw isHeldBack ? new StreamError("no stream of events could be opened") : error;
  } finally {
    opened.abort();
  }
}

async function readStream(
  response: Response,
  listener: Listener,
  own: AbortController,
  approver: Approver,
): Promise<string> {
  const reader = response.body?.getReader();
  const events = new EventReader(MAX_MESSAGE);
  const pauses = new PingPauses(approver.http.clock);
  if (reader === undefined) return "the stream is empty";
  try {
    for (;;) {
      const heard = new AbortController();
      const silence = pauses.silence(events.pings);
      if (silence !== undefined)
        void approver.http.clock.sleep(silence, heard.signal).then(() => heard.signal.aborted || own.abort());
      const { done, value } = await reader.read().finally(() => heard.abort());
      if (done) return "the gateway has ended the stream";
      for (const { data, id } of events.feed(value)) listener.onMessage(data, id);
    }
  } catch (error) {
    own.abort();
    return error instanceof StreamError ? error.message : "the stream was interrupted";
  }
}

/** How long a stream pauses between pings, which are optional: one that does not ping is heard of by what it carries. */
class PingPauses {
  readonly #clock: Clock;
  #last: { readonly count: number; readonly at: number } | undefined;
  #longest: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For how long the stream may be silent, after so many pings; `undefined` if it may be for ever. */
  silence(count: number): number | undefined {
    const at = this.#clock.now().millis;
    if (count > (this.#last?.count ?? 0)) {
      if (this.#last !== undefined) this.#longest = Math.max(this.#longest ?? 0, at - this.#last.at);
      this.#last = { count, at };
    }
    return this.#longest === undefined ? undefined : Math.max(SILENCE_MILLIS, 3 * this.#longest);
  }
}
