// The prompts that this device has sent, and what became of them. The last ones are kept in this browser.

import type { PromptStatus } from "../protocol/index.ts";
import type { PromptRecord } from "./state.ts";
import type { Store } from "./store.ts";

/** So many are kept. */
export const MAX_PROMPTS = 50;

const KEY = "prompts";

/** The status of a prompt now: one that waits does so until its time is over. */
export function statusOf({ status, expiresAt }: PromptRecord, now: number): PromptStatus {
  return status === "queued" && Date.parse(expiresAt) <= now ? "expired" : status;
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

  /** A prompt was sent. */
  async add(record: PromptRecord): Promise<void> {
    await this.#change((all) => [record, ...all].slice(0, MAX_PROMPTS));
  }

  /** The gateway says what became of a prompt. */
  async acknowledged(requestId: string, status: PromptStatus): Promise<void> {
    if (!this.#store.state.prompts.some((record) => record.requestId === requestId)) return;
    await this.#change((all) => all.map((record) => (record.requestId === requestId ? { ...record, status } : record)));
  }

  async #change(change: (all: readonly PromptRecord[]) => readonly PromptRecord[]): Promise<void> {
    const prompts = await this.#store.database.update(KEY, (before) =>
      change((before as PromptRecord[] | undefined) ?? []),
    );
    this.#store.set({ prompts });
    this.#store.changed();
  }
}
