// This device's decisions: kept before they are sent, sent, and watched until the machine has reported.

import { receiptSession } from "../protocol/index.ts";
import { interrupted, isBeingSent, isSettled, keepRecord, look, type SentRecord, submit, watch } from "./sent.ts";
import type { Store } from "./store.ts";

/** What another tab has not sent after this time, it does not send any more. */
const SENDING_MILLIS = 60_000;

/** The decisions of this device. */
export class Answers {
  readonly #store: Store;
  readonly #watches = new Map<string, AbortController>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Reads what is kept, and goes on watching. */
  async load(): Promise<void> {
    const sent = ((await this.#store.database.allSent()) as SentRecord[]).map(interrupted);
    this.#store.set({ sent: new Map(sent.map((record) => [record.requestId, record])) });
    for (const record of sent) this.#watch(record);
  }

  /** Reads what another tab has kept: what it has answered leaves the inbox. */
  async reload(): Promise<void> {
    const kept = (await this.#store.database.allSent()) as SentRecord[];
    const now = this.#store.approver.http.clock.now().millis;
    const isStuck = (record: SentRecord): boolean => now - Date.parse(record.signedAt) > SENDING_MILLIS;
    const sent = kept.map((record) => (isStuck(record) ? interrupted(record) : record));
    const inbox = sent.reduce(
      (all, { requestId, acceptedAt }) => (acceptedAt === undefined ? all : all.end(requestId, "answered", Date.now())),
      this.#store.state.inbox,
    );
    this.#store.set({ sent: new Map(sent.map((record) => [record.requestId, record])), inbox });
    // What another tab has sent, it watches itself.
    for (const record of sent)
      if (record.failed !== undefined && !this.#watches.has(record.requestId)) this.#watch(record);
  }

  /**
   * Keeps a signed decision and sends it. What is kept before it is sent can be sent again. Throws, and sends nothing, if this
   * device has signed another one about the request, also in another tab.
   */
  async send(record: SentRecord): Promise<void> {
    await this.#keep(record);
    const result = await submit(this.#store.approver, record);
    await this.#keep(result);
    this.#watch(result);
  }

  /** Sends a decision again of which it is not known whether it has arrived. */
  async sendAgain(requestId: string): Promise<void> {
    const record = this.#store.state.sent.get(requestId);
    if (record !== undefined) await this.send(record);
  }

  /** Looks once what became of a decision, however old it is. */
  async look(requestId: string): Promise<void> {
    const record = this.#store.state.sent.get(requestId);
    if (record === undefined || isSettled(record) || isBeingSent(record)) return;
    const seen = await look(this.#store.approver, this.#store.state.pins, record).catch(() => record);
    if (seen !== record) await this.#keep(seen);
  }

  /** Something of a session has arrived: a receipt comes as a session of its own. */
  async heard(sessionId: string): Promise<void> {
    const open = [...this.#store.state.sent.values()].filter((record) => !isSettled(record));
    const reported = open.find(({ requestId }) => receiptSession(requestId, 1) === sessionId);
    if (reported !== undefined) await this.look(reported.requestId);
  }

  stop(): void {
    for (const ending of this.#watches.values()) ending.abort();
  }

  async #keep(record: SentRecord): Promise<void> {
    const { requestId } = record;
    const kept = await keepRecord(this.#store.database, record);
    const { sent, inbox } = this.#store.state;
    // A card that says that another tab has answered leaves by itself.
    const isAnswered = kept.acceptedAt !== undefined && inbox.get(requestId)?.end !== "answered";
    this.#store.set({
      sent: new Map([...sent, [requestId, kept]]),
      ...(isAnswered ? { inbox: inbox.remove(requestId) } : {}),
    });
    this.#store.changed();
  }

  #watch(record: SentRecord): void {
    if (isSettled(record) || isBeingSent(record)) return;
    this.#watches.get(record.requestId)?.abort();
    const ending = new AbortController();
    this.#watches.set(record.requestId, ending);
    void watch(
      this.#store.approver,
      () => this.#store.state.pins,
      record,
      (seen) => this.#keep(seen),
      ending.signal,
    );
  }
}
