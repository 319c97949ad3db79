// What an open tab says while nobody looks at it: how many requests wait, and a notification where the person allows it.

import { noticeData, wordsOf } from "../notices/notice.ts";
import { CallError } from "../protocol/index.ts";
import { texts } from "../texts.ts";
import type { Card } from "./inbox.ts";
import { workerSite } from "./push.ts";
import { go } from "./route.ts";
import type { Store } from "./store.ts";

/** Whether this browser can tell a person that something waits; `undefined` if they were not asked yet. */
export function mayNotify(): boolean | undefined {
  if (!("Notification" in globalThis)) return false;
  return Notification.permission === "default" ? undefined : Notification.permission === "granted";
}

/** The words of a tab's notification: that something waits; or who asks and for what, if the person wants to see it there. */
export function notificationOf(
  { request, payload }: Card,
  showsRequests: boolean,
): { readonly title: string; readonly body: string } | undefined {
  if (request === undefined || payload === undefined) return undefined;
  return showsRequests ? wordsOf(request, payload) : { title: texts.name, body: texts.waitingNotice };
}

/** Keeps the title, the badge and the notifications of a tab as the inbox is. */
export class Attention {
  readonly #store: Store;
  readonly #shown = new Map<string, Notification>();
  /** What was there before needs no notification. */
  readonly #known = new Set<string>();
  /** What waited when it was last looked whether a notification can be closed. */
  #settled = "";
  #isClosing = false;

  constructor(store: Store) {
    this.#store = store;
    store.subscribe(() => this.#changed());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState !== "visible") return;
      this.#closeAll();
      void this.#closeSettled();
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
    // Also once when the page has started: what was answered elsewhere meanwhile needs no notification.
    const settled = phase === "ready" ? ["ready", ...waiting].join(" ") : "";
    if (settled !== this.#settled) {
      this.#settled = settled;
      if (settled !== "") void this.#closeSettled();
    }
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
    const { notices, profile } = this.#store.state;
    // A device that gets pushes shows those.
    if (notices.status === "on" && !notices.isSilent) return;
    const showsRequests = profile?.notices?.showsRequests === true;
    const words = mayNotify() === true ? notificationOf(card, showsRequests) : undefined;
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

  /** Closes notifications of the worker about what does not wait any more. */
  async #closeSettled(): Promise<void> {
    if (this.#isClosing || this.#store.state.phase !== "ready") return;
    this.#isClosing = true;
    try {
      for (const notification of (await (await workerSite())?.getNotifications()) ?? []) {
        const data = noticeData(notification.data);
        if (data?.kind !== "request" || data.requestIds.length === 0) continue;
        const waits = await Promise.all(data.requestIds.map((id) => this.#waits(id)));
        if (!waits.includes(true)) notification.close();
      }
    } catch {
      // They are closed the next time.
    } finally {
      this.#isClosing = false;
    }
  }

  /** Whether a request waits for an answer, as far as it is known. */
  async #waits(requestId: string): Promise<boolean> {
    const { inbox, sent } = this.#store.state;
    if (sent.get(requestId)?.acceptedAt !== undefined) return false;
    const card = inbox.get(requestId);
    if (card !== undefined) return card.end === undefined;
    return this.#store.approver.status(requestId).then(
      ({ state }) => state === "pendingApproval",
      (error: unknown) => !(error instanceof CallError && error.status === 404),
    );
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
