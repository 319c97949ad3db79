// What an open tab says while nobody looks at it: how many requests wait, and a notification where the person allows it.

import { isDangerousPayload, sentenceOf } from "../protocol/index.ts";
import { texts } from "../texts.ts";
import { askerOf } from "./group.ts";
import type { Card } from "./inbox.ts";
import { go } from "./route.ts";
import type { Store } from "./store.ts";

/** Whether this browser can tell a person that something waits; `undefined` if they were not asked yet. */
export function mayNotify(): boolean | undefined {
  if (!("Notification" in globalThis)) return false;
  return Notification.permission === "default" ? undefined : Notification.permission === "granted";
}

/** The words of a notification: who asks, and what happens. */
export function notificationOf(card: Card): { readonly title: string; readonly body: string } | undefined {
  const asker = askerOf(card);
  if (asker === undefined || card.payload === undefined) return undefined;
  const place = asker.project ?? asker.machine;
  const who = isDangerousPayload(card.payload) ? texts.dangerous : (asker.agent ?? texts.name);
  return { title: `${who} · ${place}`, body: sentenceOf(card.payload) };
}

/** Keeps the title, the badge and the notifications of a tab as the inbox is. */
export class Attention {
  readonly #store: Store;
  readonly #shown = new Map<string, Notification>();
  /** What was there before needs no notification. */
  readonly #known = new Set<string>();

  constructor(store: Store) {
    this.#store = store;
    store.subscribe(() => this.#changed());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.#closeAll();
    });
  }

  #changed(): void {
    const { phase, inbox } = this.#store.state;
    const open = phase === "ready" ? inbox.open : [];
    const title = open.length === 0 ? texts.name : `(${open.length}) ${texts.name}`;
    if (document.title !== title) {
      document.title = title;
      void setBadge(open.length);
    }
    const waiting = new Set(open.map(({ requestId }) => requestId));
    for (const [requestId, notification] of this.#shown) {
      if (waiting.has(requestId)) continue;
      notification.close();
      this.#shown.delete(requestId);
    }
    for (const card of open) {
      if (this.#known.has(card.requestId)) continue;
      this.#known.add(card.requestId);
      if (document.visibilityState !== "visible") this.#notify(card);
    }
  }

  #notify(card: Card): void {
    const words = mayNotify() === true ? notificationOf(card) : undefined;
    if (words === undefined) return;
    try {
      // One for each session: a newer one takes the place of the one before.
      const tag = card.request?.session ?? card.requestId;
      // Who was told of a request hears nothing when it is asked anew for a new device.
      const silent = card.request !== undefined && this.#store.state.inbox.wasMoved(card.request);
      const notification = new Notification(words.title, { body: words.body, tag, silent });
      notification.onclick = () => {
        window.focus();
        go({ name: "request", id: card.requestId });
      };
      this.#shown.set(card.requestId, notification);
    } catch {
      // Some phones show notifications of installed apps only; the title and the badge say it then.
    }
  }

  #closeAll(): void {
    for (const notification of this.#shown.values()) notification.close();
    this.#shown.clear();
  }
}

/** The number on the icon of the app, where there is one. */
async function setBadge(count: number): Promise<void> {
  const badge = navigator as { setAppBadge?: (count: number) => Promise<void>; clearAppBadge?: () => Promise<void> };
  try {
    await (count === 0 ? badge.clearAppBadge?.() : badge.setAppBadge?.(count));
  } catch {
    // It is only an ornament.
  }
}
