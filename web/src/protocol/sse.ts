// Reads server-sent events from a stream of bytes.

import { CountersignError } from "./errors.ts";

/** One event with data. */
export interface SseEvent {
  /** The position after it, for `Last-Event-ID`. */
  readonly id: string | undefined;
  readonly data: string;
}

/** What arrives is not a stream of events, or more than the protocol allows. */
export class StreamError extends CountersignError {
  readonly code = "stream";
  readonly next = "Connect again, perhaps over another transport.";
}

/** Puts events together from pieces of any size. Pings and other events without data are left out. */
export class EventReader {
  readonly #max: number;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #line = "";
  #endsWithCr = false;
  #data: string[] = [];
  #size = 0;
  #id: string | undefined;
  #isPing = false;
  /** How often the stream has said that it is alive, by an event or by a comment. */
  pings = 0;

  /** `max` is the size of an event, in characters, that is still read. */
  constructor(max: number) {
    this.#max = max;
  }

  /** The events that end in this piece. Throws {@link StreamError}. */
  feed(piece: Uint8Array): SseEvent[] {
    let text: string;
    try {
      text = this.#decoder.decode(piece, { stream: true });
    } catch {
      throw new StreamError("the stream is not UTF-8");
    }
    // A CR and the LF after it are one line break, also if they come in two pieces.
    if (this.#endsWithCr && text.startsWith("\n")) text = text.slice(1);
    if (text !== "") this.#endsWithCr = text.endsWith("\r");
    const events: SseEvent[] = [];
    const [first = "", ...lines] = text.split(/\r\n|\n|\r/);
    let line = this.#line + first;
    for (const next of lines) {
      const event = this.#end(line);
      if (event !== undefined) events.push(event);
      line = next;
    }
    this.#line = line;
    if (this.#line.length + this.#size > this.#max) throw new StreamError("an event is too large");
    return events;
  }

  /** Takes a whole line; returns the event that it ends. */
  #end(line: string): SseEvent | undefined {
    if (line === "") {
      const event = { id: this.#id, data: this.#data.join("\n") };
      const isLeftOut = this.#isPing || event.data === "";
      [this.#data, this.#size, this.#id, this.#isPing] = [[], 0, undefined, false];
      return isLeftOut ? undefined : event;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") {
      this.#data.push(value);
      this.#size += value.length + 1;
      if (this.#size > this.#max) throw new StreamError("an event is too large");
    } else if (field === "id") {
      this.#id = value;
    } else if (field === "event") {
      this.#isPing = value === "ping";
    }
    // Other names are in the envelope too, a comment has none, and when to come back is our own matter.
    if (field === "" || (field === "event" && this.#isPing)) this.pings += 1;
    return undefined;
  }
}
