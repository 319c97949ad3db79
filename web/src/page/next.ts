// After an answer: the next request comes by itself, unless it needs care.

import { isSerious } from "../protocol/index.ts";
import type { App } from "./app.ts";
import { nextCame } from "./guard.ts";
import type { Card } from "./inbox.ts";
import { go } from "./route.ts";

/** The requests after one in the list, then those before it. */
export function following(open: readonly Card[], requestId: string): readonly Card[] {
  const at = open.findIndex((card) => card.requestId === requestId);
  return at < 0 ? open : [...open.slice(at + 1), ...open.slice(0, at)];
}

/** Whether a request waits to be opened, and does not come by itself. */
export function waitsToBeOpened({ payload }: Card): boolean {
  return payload === undefined || isSerious(payload);
}

/** Shows the next request after an answer that the gateway has taken, if the answered one is still on the screen. */
export function showNext(app: App, answered: string, order: readonly Card[]): void {
  const { route, inbox, sent } = app.state;
  if (route.name !== "request" || route.id !== answered || sent.get(answered)?.acceptedAt === undefined) return;
  const waiting = new Set(inbox.open.map(({ requestId }) => requestId));
  const next = order.find(({ requestId }) => waiting.has(requestId));
  if (next === undefined || waitsToBeOpened(next)) return;
  nextCame();
  app.set({ after: { requestId: answered, next: next.requestId } });
  go({ name: "request", id: next.requestId });
}
