// The prompts of this device, and what became of them: kept before they are sent, since the machine may have one before
// the gateway has answered. The last ones are kept in this browser.

import { type BuiltPrompt, CallError, type PromptStatus } from "../protocol/index.ts";
import type { PromptRecord } from "./state.ts";
import type { Store } from "./store.ts";

/** So many are kept. */
export const MAX_PROMPTS = 50;

const KEY = "prompts";

const isWaiting = ({ status }: PromptRecord): boolean => status === "sending" || status === "queued";

/** The status of a prompt now: one that waits does so until its time is over; nobody knows then what became of it. */
export function statusOf(prompt: PromptRecord, now: number): PromptRecord["status"] | "unheard" {
  return isWaiting(prompt) && Date.parse(prompt.expiresAt) <= now ? "unheard" : prompt.status;
}

/** What became of the order to stop the agent of a session, on this machine; `undefined` if there was none. One that counts comes first. */
export function stopStatus(
  prompts: readonly PromptRecord[],
  { sessionId, machine }: { readonly sessionId: string | undefined; readonly machine: string },
  now: number,
): ReturnType<typeof statusOf> | undefined {
  const all = prompts
    .filter((prompt) => prompt.isStop === true && prompt.sessionId === sessionId && prompt.enforcerId === machine)
    .map((prompt) => statusOf(prompt, now));
  return all.find(isStopping) ?? all[0];
}

/** Whether an order to stop counts: it is on its way, or the machine has it. */
export function isStopping(status: ReturnType<typeof statusOf> | undefined): boolean {
  return status === "sending" || status === "queued" || status === "delivered";
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

  /** Keeps a prompt and sends it. One that the gateway has refused is not kept; one that may have arrived is sent again later. */
  async send(record: Omit<PromptRecord, "requestId" | "status" | "built">, built: BuiltPrompt): Promise<void> {
    const { requestId } = built;
    const kept = { ...record, requestId, status: "sending", built } as const;
    await this.#change((all) => [kept, ...all].slice(0, MAX_PROMPTS));
    try {
      await this.#post(built);
    } catch (error) {
      // The answer was lost on the way; that the gateway has the prompt is known all the same.
      if (this.#store.state.prompts.some((known) => known.requestId === requestId && known.status !== "sending"))
        return;
      if (isRefused(error)) await this.#change((all) => all.filter((known) => known.requestId !== requestId));
      throw error;
    }
  }

  /** Sends again what still waits: the prompt may not have arrived, or the word on it. */
  async sendAgain(): Promise<void> {
    const now = this.#store.approver.http.clock.now().millis;
    for (const prompt of this.#store.state.prompts.filter((known) => statusOf(known, now) !== "unheard")) {
      if (!isWaiting(prompt) || prompt.built === undefined) continue;
      await this.#post(prompt.built).catch(async (error: unknown) => {
        if (isRefused(error)) await this.#setStatus(prompt.requestId, "error");
      });
    }
  }

  /** The gateway says what became of a prompt. */
  async acknowledged(requestId: string, status: PromptStatus): Promise<void> {
    await this.#setStatus(requestId, status);
  }

  async #post(built: BuiltPrompt): Promise<void> {
    await this.#setStatus(built.requestId, await this.#store.approver.sendPrompt(built));
  }

  /** Sets the status of a prompt that waits: what is final stays. */
  async #setStatus(requestId: string, status: PromptStatus): Promise<void> {
    const change = (record: PromptRecord): PromptRecord => {
      if (record.requestId !== requestId || !isWaiting(record)) return record;
      const { built, ...rest } = { ...record, status };
      return isWaiting(rest) && built !== undefined ? { ...rest, built } : rest;
    };
    await this.#change((all) => all.map(change));
  }

  async #change(change: (all: readonly PromptRecord[]) => readonly PromptRecord[]): Promise<void> {
    const prompts = await this.#store.database.update(KEY, (before) =>
      change((before as PromptRecord[] | undefined) ?? []),
    );
    this.#store.set({ prompts });
    this.#store.changed();
  }
}

/** Whether the gateway has refused a prompt for good. */
function isRefused(error: unknown): boolean {
  return error instanceof CallError && error.reason === "refused" && !error.isRetryable;
}
