// Requests that were asked for again after their time, and which newer request took their place.

import { CallError, type OpenedRequest } from "../protocol/index.ts";
import { texts } from "../texts.ts";
import type { Again } from "./state.ts";
import type { Store } from "./store.ts";

/** So many are kept. */
const MAX_KEPT = 200;
/** A gateway keeps the asking for a machine that is off for this long. After that it may be done once more. */
const ASKED_MILLIS = 24 * 3_600_000;

const KEY = "again";

const isOf =
  (requestId: string, enforcerId: string) =>
  (one: Again): boolean =>
    one.requestId === requestId && one.enforcerId === enforcerId;

/** What is known of a request of this machine: whether it was asked for again lately, and what has replaced it. */
export function becameOf(
  all: readonly Again[],
  requestId: string,
  enforcerId: string,
  now: number,
): { readonly isAsked: boolean; readonly replacedBy: string | undefined } {
  const known = all.find(isOf(requestId, enforcerId));
  const age = known?.askedAt === undefined ? Number.NaN : now - Date.parse(known.askedAt);
  return { isAsked: age < ASKED_MILLIS, replacedBy: known?.replacedBy };
}

/** Asks for requests again, and remembers it in this browser. */
export class AskedAgain {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async load(): Promise<void> {
    this.#store.set({ again: ((await this.#store.database.get(KEY)) as Again[] | undefined) ?? [] });
  }

  /** Asks the machine of a request to send it anew. Asking twice is harmless: the gateway passes one on. */
  async ask(requestId: string, enforcerId: string): Promise<void> {
    const { approver } = this.#store;
    await approver.refresh(requestId).catch((error: unknown) => {
      throw error instanceof CallError && error.status === 404 ? new Error(texts.askAgainGone) : error;
    });
    await this.#keep([{ requestId, enforcerId, askedAt: `${approver.http.clock.now()}` }]);
  }

  /** Takes note of requests that say that they take the place of earlier ones. */
  async heard(requests: readonly OpenedRequest[]): Promise<void> {
    const { again } = this.#store.state;
    const news = requests.flatMap(({ requestId, enforcerId, supersedes }): Again[] => {
      const isKnown = supersedes === undefined || again.find(isOf(supersedes, enforcerId))?.replacedBy === requestId;
      return isKnown ? [] : [{ requestId: supersedes, enforcerId, replacedBy: requestId }];
    });
    if (news.length > 0) await this.#keep(news);
  }

  async #keep(news: readonly Again[]): Promise<void> {
    const merged = (all: readonly Again[], one: Again): Again[] => {
      const is = isOf(one.requestId, one.enforcerId);
      return [{ ...all.find(is), ...one }, ...all.filter((other) => !is(other))];
    };
    const again = await this.#store.database.update(KEY, (before) =>
      news.reduce<readonly Again[]>(merged, (before as Again[] | undefined) ?? []).slice(0, MAX_KEPT),
    );
    this.#store.set({ again });
    this.#store.changed();
  }
}
