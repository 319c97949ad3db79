// One connection on which messages arrive from the gateway: a WebSocket by ticket, or server-sent events by `fetch`.

import type { Approver } from "./approver.ts";
import { fromUtf8 } from "./bytes.ts";
import { CallError, segment } from "./http.ts";
import { EventReader, StreamError } from "./sse.ts";

/** The largest message that is read: a session's snapshot, with room for what the gateway adds. */
export const MAX_MESSAGE = 7_187_116 + 65_536;

/** A connection must be opened within this time. */
const OPEN_MILLIS = 15_000;

/** An event stream on which nothing was heard for this long is dead: the gateway pings it every 15 seconds. */
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
  const ticket = await approver.ticket(signal);
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
  socket.send(JSON.stringify({ msgType: "hello", capabilities: { push: true, sse: true, poll: true } }));
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
  const response = await approver.http.open({ method: "GET", path, headers }, own.signal);
  opened.abort();
  if (!(response.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) {
    own.abort();
    throw new CallError("not-understood", "it is no stream of events");
  }
  const ended = readStream(response, listener, own, approver).finally(() => signal.removeEventListener("abort", stop));
  return { send: () => false, close: stop, ended };
}

async function readStream(
  response: Response,
  listener: Listener,
  own: AbortController,
  approver: Approver,
): Promise<string> {
  const reader = response.body?.getReader();
  const events = new EventReader(MAX_MESSAGE);
  if (reader === undefined) return "the stream is empty";
  try {
    for (;;) {
      const heard = new AbortController();
      void approver.http.clock.sleep(SILENCE_MILLIS, heard.signal).then(() => heard.signal.aborted || own.abort());
      const { done, value } = await reader.read().finally(() => heard.abort());
      if (done) return "the gateway has ended the stream";
      for (const { data, id } of events.feed(value)) listener.onMessage(data, id);
    }
  } catch (error) {
    own.abort();
    return error instanceof StreamError ? error.message : "the stream was interrupted";
  }
}
