// The prompts of this device, and what became of them: kept before they are sent, since the machine may have one before
// the gateway has answered. The last ones are kept in this browser.

import type { PromptStatus } from "../protocol/index.ts";
import type { PromptRecord } from "./state.ts";
import type { Store } from "./store.ts";

/** So many are kept. */
export const MAX_PROMPTS = 50;

const KEY = "prompts";

/** The status of a prompt now: one that waits does so until its time is over. */
export function statusOf({ status, expiresAt }: PromptRecord, now: number): PromptRecord["status"] {
  const isWaiting = status === "sending" || status === "queued";
  return isWaiting && Date.parse(expiresAt) <= now ? "expired" : status;
}

/** The prompts of this device, the newest first. */
export class Prompts {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async load(): Promise<void> {
    this.#store.set({ prompts: ((await this.#store.database.get(KEY)) as PromptRecord[] | undefined) ?? [] });
  }

  /** Keeps a prompt and sends it. One that the gateway did not accept is not kept. */
  async send(record: Omit<PromptRecord, "status">, send: () => Promise<void>): Promise<void> {
    const { requestId } = record;
    await this.#change((all) => [{ ...record, status: "sending" as const }, ...all].slice(0, MAX_PROMPTS));
    try {
      await send();
    } catch (error) {
      const isUnanswered = (kept: PromptRecord): boolean => kept.requestId === requestId && kept.status === "sending";
      const left = await this.#change((all) => all.filter((kept) => !isUnanswered(kept)));
      // The answer was lost on the way; that the gateway has the prompt is known all the same.
      if (left.some((kept) => kept.requestId === requestId)) return;
      throw error;
    }
    await this.#setStatus(requestId, (status) => (status === "sending" ? "queued" : status));
  }

  /** The gateway says what became of a prompt. */
  async acknowledged(requestId: string, status: PromptStatus): Promise<void> {
    await this.#setStatus(requestId, () => status);
  }

  async #setStatus(requestId: string, next: (status: PromptRecord["status"]) => PromptRecord["status"]): Promise<void> {
    const change = (record: PromptRecord): PromptRecord => ({ ...record, status: next(record.status) });
    await this.#change((all) => all.map((record) => (record.requestId === requestId ? change(record) : record)));
  }

  async #change(change: (all: readonly PromptRecord[]) => readonly PromptRecord[]): Promise<readonly PromptRecord[]> {
    const prompts = await this.#store.database.update(KEY, (before) =>
      change((before as PromptRecord[] | undefined) ?? []),
    );
    this.#store.set({ prompts });
    this.#store.changed();
    return prompts;
  }
}
