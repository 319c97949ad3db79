// What waits for an approver, live: one connection over the best transport that works, and each message once. The inbox is
// also listed on every connection and from time to time, so that nothing is missed that a connection loses or does not carry.

import { type Approver, EXCHANGE_STATES, type ExchangeEnd, type InboxItem } from "./approver.ts";
import { type Envelope, readEnvelope, writeEnvelope } from "./envelope.ts";
import { CallError, jittered } from "./http.ts";
import { type JsonObject, parse } from "./json.ts";
import { id, Members, sha256, word } from "./members.ts";
import type { Pins } from "./pins.ts";
import { PROMPT_STATUSES, type PromptStatus } from "./prompt.ts";
import { OpenError } from "./request.ts";
import {
  type Connection,
  NoTicketsError,
  openSocket,
  openStream,
  type Transport,
  type WebSocketClass,
} from "./transport.ts";

/** What an approver is shown. */
export type ChannelEvent =
  /** Requests arrive over this transport from now on. A WebSocket carries everything; the others carry requests only. */
  | { readonly type: "connected"; readonly transport: Transport }
  /** No requests arrive at the moment. The channel goes on trying. */
  | { readonly type: "disconnected"; readonly reason: string }
  /** A request: opened and checked, and each once; or the reason why it can't be decided here, each time that it comes. */
  | { readonly type: "request"; readonly item: InboxItem }
  /** A request that was shown needs no decision any more, by the gateway's word; why, unless it is only not listed any more. */
  | { readonly type: "gone"; readonly requestId: string; readonly end: ExchangeEnd | undefined }
  /** What became of a prompt, by the gateway's word. */
  | {
      readonly type: "prompt-ack";
      readonly requestId: string;
      readonly promptHash: string;
      readonly status: PromptStatus;
    }
  /** A message about an agent's session, not opened. */
  | { readonly type: "session"; readonly msgType: string; readonly sessionId: string; readonly event: JsonObject }
  /** The credential is not accepted. The channel has ended. */
  | { readonly type: "refused"; readonly error: CallError };

/** How a channel behaves. */
export interface ChannelSettings {
  /** The transports that are used, the best one first. */
  readonly transports?: readonly Transport[];
  /** How often the inbox is listed while a WebSocket is open. */
  readonly listMillis?: number;
  /** How often it is listed while a stream is open, which does not say how requests end. */
  readonly streamListMillis?: number;
  /** How often it is listed when there is no connection that pushes. */
  readonly pollMillis?: number;
  /** After a fallback, a better transport is tried again after this time, then after twice as long, up to sixteen times. */
  readonly upAgainMillis?: number;
  readonly webSocket?: WebSocketClass;
}

/** A gateway without tickets is asked for one again after so many times `upAgainMillis`. */
const NO_TICKETS_TIMES = 16;
const BACKOFF_MILLIS = { first: 1_000, longest: 30_000 };
const PROVEN_MILLIS = 10_000;
/** What a listing finds must have been pushed within this time, or the connection carries nothing. */
const PUSH_MILLIS = 10_000;
const SEEN_GENERATION = 4_096;

/**
 * A live channel. Events are reported one after the other, in the order of their messages. What became of a prompt is
 * acknowledged when `report` is done with it.
 */
export class ApproverChannel {
  readonly #approver: Approver;
  readonly #pins: () => Pins;
  readonly #report: (event: ChannelEvent) => unknown;
  readonly #settings: Required<Omit<ChannelSettings, "webSocket">> & Pick<ChannelSettings, "webSocket">;
  readonly #stop = new AbortController();
  #wake = new AbortController();
  #seen: [Set<string>, Set<string>] = [new Set(), new Set()];
  /** Messages whose request could not be opened. */
  readonly #broken = new Set<string>();
  /** The requests that were reported and have not ended. */
  readonly #open = new Set<string>();
  /** Messages that a listing has found and no connection has pushed, with the time of the listing. */
  readonly #unpushed = new Map<string, number>();
  #queue: Promise<void> = Promise.resolve();
  #position: string | undefined;
  #connection: Connection | undefined;
  #isConnected: boolean | undefined;
  /** Until then no WebSocket is tried, in milliseconds: the gateway has no tickets. */
  #noSocketUntil = 0;

  constructor(
    approver: Approver,
    pins: () => Pins,
    report: (event: ChannelEvent) => unknown,
    settings: ChannelSettings = {},
  ) {
    this.#approver = approver;
    this.#pins = pins;
    this.#report = report;
    this.#settings = {
      transports: ["websocket", "sse", "poll"],
      listMillis: 60_000,
      streamListMillis: 15_000,
      pollMillis: 3_000,
      upAgainMillis: 60_000,
      ...settings,
    };
  }

  /** Connects, and goes on until {@link ApproverChannel.stop} or until the credential is refused. */
  async run(): Promise<void> {
    let [level, delay, upAgain] = [0, BACKOFF_MILLIS.first, this.#settings.upAgainMillis];
    while (!this.#stop.signal.aborted) {
      const begun = this.#approver.http.clock.now().millis;
      const best = this.#best(begun);
      level = Math.max(level, best);
      const transport = this.#settings.transports[level] ?? "poll";
      const limit = level > best ? upAgain : best > 0 ? this.#noSocketUntil - begun : undefined;
      const outcome = await this.#serve(transport, limit);
      if (outcome.kind === "refused") {
        this.#report({ type: "refused", error: outcome.error });
        return;
      }
      if (outcome.kind === "try-better") {
        [level, upAgain] = [0, Math.min(upAgain * 2, this.#settings.upAgainMillis * 16)];
        continue;
      }
      if (outcome.kind === "no-tickets" && level < this.#settings.transports.length - 1) {
        // Said at once, so nobody is told of a break: the next transport is tried right away.
        this.#noSocketUntil = begun + NO_TICKETS_TIMES * this.#settings.upAgainMillis;
        level += 1;
        continue;
      }
      this.#disconnected(outcome.reason);
      if (outcome.kind === "useless" && level < this.#settings.transports.length - 1) {
        level += 1;
        continue;
      }
      // A connection that ends at once has not proved that connecting helps: the next one waits longer, as after a failure.
      if (outcome.kind === "worked" && this.#approver.http.clock.now().millis - begun >= PROVEN_MILLIS) {
        delay = BACKOFF_MILLIS.first;
        if (level === 0) upAgain = this.#settings.upAgainMillis;
      }
      await this.#pause(Math.max(jittered(delay), outcome.retryAfter));
      delay = Math.min(delay * 2, BACKOFF_MILLIS.longest);
    }
  }

  /** Ends the channel. */
  stop(): void {
    this.#stop.abort();
    this.#wake.abort();
    this.#connection?.close();
  }

  /** Lists now, and connects now if there is no connection: for a page that is shown again, or a network that is back. */
  wake(): void {
    this.#wake.abort();
    this.#wake = new AbortController();
  }

  /** Gives the connection up and opens another one: for a network that was gone, whose connections may be dead without a word. */
  reconnect(): void {
    this.#connection?.close();
    this.wake();
  }

  /** Reports every request again, opened with the pins of now: for a device that has just been paired. */
  reopen(): void {
    this.#seen = [new Set(), new Set()];
    this.wake();
  }

  /** The best transport that may be tried now. */
  #best(now: number): number {
    const { transports } = this.#settings;
    return transports[0] === "websocket" && transports.length > 1 && now < this.#noSocketUntil ? 1 : 0;
  }

  async #pause(millis: number): Promise<void> {
    await this.#approver.http.clock.sleep(millis, this.#wake.signal);
  }

  #disconnected(reason: string): void {
    if (this.#isConnected !== false && !this.#stop.signal.aborted) this.#report({ type: "disconnected", reason });
    this.#isConnected = false;
  }

  /** Opens a connection and serves it until it ends, or for `limit` milliseconds. */
  async #serve(transport: Transport, limit: number | undefined): Promise<Outcome> {
    const { clock } = this.#approver.http;
    const over = new AbortController();
    const end = (): void => over.abort();
    this.#stop.signal.addEventListener("abort", end, { once: true });
    try {
      const connection = await this.#connect(transport, over.signal);
      this.#connection = connection;
      this.#isConnected = true;
      this.#unpushed.clear();
      this.#report({ type: "connected", transport });
      const isLimit =
        limit === undefined
          ? new Promise<never>(() => undefined)
          : clock.sleep(limit, over.signal).then(() => TRY_BETTER);
      const closed = connection.ended.then((reason): Outcome => ({ kind: "worked", reason, retryAfter: 0 }));
      return await Promise.race([closed, isLimit, this.#listAgainAndAgain(transport, over.signal)]);
    } catch (error) {
      return failed(error);
    } finally {
      this.#connection?.close();
      this.#connection = undefined;
      this.#stop.signal.removeEventListener("abort", end);
      over.abort();
    }
  }

  #connect(transport: Transport, signal: AbortSignal): Promise<Connection> {
    const listener = {
      onMessage: (text: string, position: string | undefined) => this.#enqueue(() => this.#received(text, position)),
    };
    if (transport === "websocket") return openSocket(this.#approver, listener, signal, this.#settings.webSocket);
    if (transport === "sse") return openStream(this.#approver, listener, signal, this.#position);
    return Promise.resolve({ send: () => false, close: () => undefined, ended: new Promise<never>(() => undefined) });
  }

  /** Lists until the connection is over; returns why the connection can't be used any more. */
  async #listAgainAndAgain(transport: Transport, signal: AbortSignal): Promise<Outcome> {
    const { clock } = this.#approver.http;
    const connectedAt = clock.now().millis;
    const { pollMillis, streamListMillis, listMillis } = this.#settings;
    const every = { poll: pollMillis, sse: streamListMillis, websocket: listMillis }[transport];
    while (!signal.aborted) {
      const now = clock.now().millis;
      const isDeaf = [...this.#unpushed.values()].some((found) => now - found > PUSH_MILLIS);
      if (transport !== "poll" && isDeaf)
        return { kind: "worked", reason: "the connection carries nothing", retryAfter: 0 };
      // What waited before the connection was opened, another device may have acknowledged: that is not pushed.
      await this.#list(transport !== "poll" && now - connectedAt > 2 * PUSH_MILLIS);
      await this.#pause(every);
    }
    return { kind: "worked", reason: "stopped", retryAfter: 0 };
  }

  async #list(isPushExpected: boolean): Promise<void> {
    const before = new Set(this.#open);
    const { envelopes, isComplete } = await this.#approver.list();
    await this.#enqueue(async () => {
      for (const envelope of envelopes) {
        const msgId = idOf(envelope);
        // Not every gateway gives a message the same id in a listing.
        const isHeardOf = this.#wasSeen(msgId) || this.#open.has(envelope.requestId);
        if (isPushExpected && !isHeardOf) this.#unpushed.set(msgId, this.#approver.http.clock.now().millis);
        before.delete(envelope.requestId);
        await this.#pass(envelope, false);
      }
      if (isComplete) for (const requestId of before) this.#gone(requestId, undefined);
    });
  }

  /** Runs actions one after the other. A message that can't be read ends the connection. */
  #enqueue(action: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue.then(action).catch(() => this.#connection?.close());
    return this.#queue;
  }

  async #received(text: string, position: string | undefined): Promise<void> {
    const value = new Members(parse(text)).object;
    const isBare = value.members.get("msgType") === "refresh.request" && !value.members.has("body");
    if (isBare) return;
    const envelope = readEnvelope(value, "");
    if (envelope.msgType === "exchange.status") {
      this.#ended(envelope);
      return;
    }
    this.#unpushed.delete(idOf(envelope));
    await this.#pass(envelope, true);
    if (position !== undefined) this.#position = position;
  }

  /** Passes a message on that was not passed on before. One that is pushed again is acknowledged again. */
  async #pass(envelope: Envelope, isPushed: boolean): Promise<void> {
    const { msgType } = envelope;
    const msgId = idOf(envelope);
    const isKnown = msgType === "approval.request" || msgType === "exchange.withdrawn" || msgType === "prompt.ack";
    const isSession = msgType.startsWith("session.");
    // What only answers what was sent, and what is not known here.
    if (!(isKnown || isSession)) return;
    const isNew = !this.#wasSeen(msgId) || this.#broken.has(msgId);
    this.#see(msgId);
    if (isNew) this.#noteBroken(msgId, !(await this.#reportMessage(envelope)));
    if (isNew || isPushed) this.#acknowledge(envelope);
  }

  /** Remembers what could not be opened: it is opened again when it comes again, since it may have been changed on the way. */
  #noteBroken(msgId: string, isBroken: boolean): void {
    if (!isBroken) this.#broken.delete(msgId);
    else if (this.#broken.size < SEEN_GENERATION) this.#broken.add(msgId);
  }

  /** Reports a message; whether it could be opened. */
  async #reportMessage(envelope: Envelope): Promise<boolean> {
    const { msgType, requestId } = envelope;
    if (msgType === "approval.request") {
      const item = await this.#approver.open(envelope, this.#pins());
      this.#open.add(requestId);
      this.#report({ type: "request", item });
      return !(item.opened instanceof OpenError);
    }
    if (msgType === "exchange.withdrawn") {
      this.#gone(requestId, "withdrawn");
    } else if (msgType === "prompt.ack") {
      const members = new Members(envelope.body);
      const promptHash = members.required("promptHash", sha256);
      const status = members.required("status", word(PROMPT_STATUSES));
      await this.#report({ type: "prompt-ack", requestId: members.required("requestId", id), promptHash, status });
    } else {
      this.#report({ type: "session", msgType, sessionId: requestId, event: envelope.body });
    }
    return true;
  }

  /** A request has ended elsewhere. It is sent once, and not acknowledged; whoever misses it, or can't read it, lists. */
  #ended({ requestId, body }: Envelope): void {
    const state = EXCHANGE_STATES.find((known) => known === body.members.get("state"));
    if (state === undefined || state === "pendingApproval" || body.members.get("requestId") !== requestId) return;
    this.#gone(requestId, state);
  }

  #gone(requestId: string, end: ExchangeEnd | undefined): void {
    if (this.#open.delete(requestId)) this.#report({ type: "gone", requestId, end });
  }

  /** Says that this device has a message. If it does not arrive, the message comes again. */
  #acknowledge({ requestId, msgId }: Envelope): void {
    const { clock } = this.#approver.http;
    const body = JSON.stringify({ msgId, status: "received", ackAt: clock.now() });
    const sender = { approverId: this.#approver.identity.id };
    const frame = writeEnvelope({ msgType: "ack.submit", requestId, createdAt: clock.now(), sender }, body);
    if (this.#connection?.send(frame) === true) return;
    void this.#approver.acknowledge(requestId, msgId, "received").catch(() => undefined);
  }

  #wasSeen(msgId: string): boolean {
    return this.#seen[0].has(msgId) || this.#seen[1].has(msgId);
  }

  /** Remembers a message, in two generations, so that the memory is bounded. */
  #see(msgId: string): void {
    this.#seen[0].add(msgId);
    if (this.#seen[0].size >= SEEN_GENERATION) this.#seen = [new Set(), this.#seen[0]];
  }
}

/** What identifies a message. The specification lets a gateway leave the id out. */
function idOf({ msgId, msgType, requestId, createdAt }: Envelope): string {
  if (msgId !== undefined) return msgId;
  // A request is told of once in each way; of sessions and prompts there is more to tell.
  const isToldOnce = msgType === "approval.request" || msgType === "exchange.withdrawn";
  return isToldOnce ? `${msgType} ${requestId}` : `${msgType} ${requestId} ${createdAt.millis}`;
}

type Outcome =
  | {
      readonly kind: "worked" | "useless" | "no-tickets" | "no-gateway";
      readonly reason: string;
      readonly retryAfter: number;
    }
  | { readonly kind: "try-better" }
  | { readonly kind: "refused"; readonly error: CallError };

const TRY_BETTER: Outcome = { kind: "try-better" };

/** A refusal is final if it is the gateway's own; something between may refuse one transport and let another one pass. */
function failed(error: unknown): Outcome {
  if (!(error instanceof CallError)) {
    const kind = error instanceof NoTicketsError ? "no-tickets" : "useless";
    return { kind, reason: error instanceof Error ? error.message : "it failed", retryAfter: 0 };
  }
  const isFinal = error.gatewayCode === "PROTO_ERR_UNAUTHENTICATED" || error.gatewayCode === "PROTO_ERR_FORBIDDEN";
  if (isFinal) return { kind: "refused", error };
  const kind = error.isRetryable || error.reason === "stopped" ? "no-gateway" : "useless";
  return { kind, reason: error.message, retryAfter: error.retryAfter ?? 0 };
}
