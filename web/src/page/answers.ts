// This device's decisions: kept before they are sent, sent, and watched until the machine has reported.

import { interrupted, isSettled, type SentRecord, submit, watch } from "./sent.ts";
import type { Store } from "./store.ts";

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
    const sent = (await this.#store.database.allSent()) as SentRecord[];
    const inbox = sent.reduce(
      (all, { requestId, acceptedAt }) => (acceptedAt === undefined ? all : all.end(requestId, "answered", Date.now())),
      this.#store.state.inbox,
    );
    this.#store.set({ sent: new Map(sent.map((record) => [record.requestId, record])), inbox });
  }

  /** Keeps a signed decision and sends it. What is kept before it is sent can be sent again. */
  async send(record: SentRecord): Promise<void> {
    await this.#keep(record);
    const result = await submit(this.#store.approver, record);
    await this.#keep(result);
    if (result.acceptedAt !== undefined) this.#store.set({ inbox: this.#store.state.inbox.remove(record.requestId) });
    this.#watch(result);
  }

  /** Sends a decision again that did not reach the gateway. */
  async sendAgain(requestId: string): Promise<void> {
    const record = this.#store.state.sent.get(requestId);
    if (record !== undefined) await this.send(record);
  }

  /** Looks for receipts now: one may have arrived. */
  look(): void {
    for (const [requestId] of this.#watches) {
      const record = this.#store.state.sent.get(requestId);
      if (record !== undefined && !isSettled(record)) this.#watch(record);
    }
  }

  stop(): void {
    for (const ending of this.#watches.values()) ending.abort();
  }

  async #keep(record: SentRecord): Promise<void> {
    await this.#store.database.keepSent(record);
    this.#store.set({ sent: new Map([...this.#store.state.sent, [record.requestId, record]]) });
    this.#store.changed();
  }

  #watch(record: SentRecord): void {
    if (isSettled(record) || record.acceptedAt === undefined) return;
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
