// A gateway that a test plays, with its WebSockets and its streams, and a clock that passes only when the test says so.

import type { Clock } from "../src/protocol/http.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import type { WebSocketClass } from "../src/protocol/transport.ts";
import { NOW } from "./desk.ts";

/** A clock that stands still until it is moved. Whoever sleeps is woken in order. */
export class Hand implements Clock {
  #now = NOW;
  #sleepers: { readonly at: number; readonly wake: () => void }[] = [];

  now(): Timestamp {
    return this.#now;
  }

  sleep(millis: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const sleeper = { at: this.#now.millis + millis, wake: resolve };
      this.#sleepers.push(sleeper);
      signal?.addEventListener("abort", () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        resolve();
      });
    });
  }

  /** Lets time pass, and everything happen that happens in it. */
  async pass(millis: number): Promise<void> {
    const end = this.#now.millis + millis;
    await rest();
    for (;;) {
      const [next] = this.#sleepers.filter(({ at }) => at <= end).sort((one, other) => one.at - other.at);
      if (next === undefined) break;
      this.#sleepers = this.#sleepers.filter((other) => other !== next);
      this.#now = Timestamp.ofMillis(Math.max(next.at, this.#now.millis));
      next.wake();
      await rest();
    }
    this.#now = Timestamp.ofMillis(end);
  }
}

/** Until nothing more happens by itself. */
export async function rest(): Promise<void> {
  for (let round = 0; round < 10; round += 1) await new Promise((resolve) => setTimeout(resolve));
}

/** A WebSocket that is open at once. */
export class FakeSocket {
  static readonly all: FakeSocket[] = [];
  readonly sent: string[] = [];
  readyState = 1;
  binaryType = "blob";
  onopen: (() => void) | undefined;
  onclose: ((event: { code: number; reason: string }) => void) | undefined;
  onmessage: ((event: { data: string }) => void) | undefined;

  constructor() {
    FakeSocket.all.push(this);
    setTimeout(() => this.onopen?.());
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {
    if (this.readyState !== 1) return;
    this.readyState = 3;
    this.onclose?.({ code: 1000, reason: "" });
  }

  push(text: string): void {
    this.onmessage?.({ data: text });
  }
}

export const fakeSockets = FakeSocket as unknown as WebSocketClass;

/** A stream of events that a test writes. */
export class FakeStream {
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  isEnded = false;

  /** The answer of a gateway, which ends when the call is given up. */
  response(signal: AbortSignal | null | undefined): Response {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
        signal?.addEventListener("abort", () => {
          this.isEnded = true;
          controller.error(new Error("given up"));
        });
      },
    });
    return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  }

  write(text: string): void {
    this.#controller?.enqueue(this.#encoder.encode(text));
  }

  event(name: string, data: string, id = ""): void {
    this.write(`${id === "" ? "" : `id: ${id}\n`}event: ${name}\ndata: ${data}\n\n`);
  }

  end(): void {
    this.isEnded = true;
    this.#controller?.close();
  }
}
