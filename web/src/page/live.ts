// What arrives while the page is open: requests, their ends, and news of prompts and sessions.

import { ApproverChannel, type ChannelEvent, type ExchangeEnd, type ExchangeStatus } from "../protocol/index.ts";
import type { AskedAgain } from "./again.ts";
import type { Answers } from "./answers.ts";
import { elsewhere } from "./elsewhere.ts";
import { nextCame } from "./guard.ts";
import { type Card, type CardEnd, FADE_MILLIS, newCard, trusted } from "./inbox.ts";
import type { Prompts } from "./prompts.ts";
import { isHistory } from "./remembered.ts";
import { goInPlace } from "./route.ts";
import { changeBehind } from "./sent.ts";
import type { Store } from "./store.ts";
import { stopForSender } from "./trust.ts";

/** Seconds after which the state of the open request is asked for, and that of those in the list; and how many at once. */
const OPEN_TICKS = 3;
const LIST_TICKS = 9;
const MAX_ASKED = 20;
/** The gateway has this time to say how a request has ended whose time is over. */
const OVERDUE_MILLIS = 3_000;
/** How a card ends by the gateway's word. What waits and is not listed was hidden on another device. */
const ENDS: Readonly<Record<ExchangeStatus["state"], CardEnd>> = {
  pendingApproval: "hidden",
  decided: "answered",
  delivered: "answered",
  expired: "expired",
  withdrawn: "withdrawn",
  cancelled: "cancelled",
};
/** Whoever has listened for this long hears of an answer when it is given. */
const HEARS_AFTER_MILLIS = LIST_TICKS * 1_000;
/** So many sessions are remembered. */
const MAX_SESSIONS = 100;

/** The live part of the page. */
export class Live {
  readonly #store: Store;
  readonly #answers: Answers;
  readonly #prompts: Prompts;
  readonly #again: AskedAgain;
  #channel: ApproverChannel | undefined;
  #release: () => void = () => undefined;
  #ticks = 0;
  /** Since when this device hears what happens. */
  #hearsSince = Number.POSITIVE_INFINITY;
  /** The requests whose end is being asked for. */
  readonly #asked = new Set<string>();

  constructor(store: Store, answers: Answers, prompts: Prompts, again: AskedAgain) {
    this.#store = store;
    this.#answers = answers;
    this.#prompts = prompts;
    this.#again = again;
  }

  /** Connects as the approver that this device is. */
  start(): void {
    this.stop();
    const store = this.#store;
    const channel = new ApproverChannel(
      store.approver,
      () => store.state.pins,
      (event) => this.#received(event),
    );
    this.#channel = channel;
    let pins = store.state.profile?.pins;
    // When this device trusts others than before, the requests that wait are opened again.
    const unsubscribe = store.subscribe(() => {
      if (store.state.profile?.pins === pins) return;
      pins = store.state.profile?.pins;
      channel.reopen();
    });
    const timer = setInterval(() => this.#tick(), 1_000);
    this.#release = () => {
      clearInterval(timer);
      unsubscribe();
      channel.stop();
    };
    void channel.run();
  }

  /** Looks for what is new now: the page is shown again. */
  wake(): void {
    this.#channel?.wake();
  }

  /** The browser says that it has no network. */
  networkGone(): void {
    this.#store.set({ isOnline: false });
  }

  /** The browser says that it has a network. A connection that was taken for gone may be open, and would never say so. */
  networkBack(): void {
    if (this.#store.state.isOnline) this.#channel?.wake();
    else this.#channel?.reconnect();
  }

  stop(): void {
    this.#release();
  }

  /** Shows what has arrived meanwhile. */
  showArrivals(): void {
    this.#store.set({ inbox: this.#store.state.inbox.merge() });
  }

  /** Removes a request from this person's inbox, without an answer. */
  async hide(requestId: string): Promise<void> {
    await this.#store.approver.hide(requestId);
    this.#store.set({ inbox: this.#store.state.inbox.remove(requestId) });
  }

  #tick(): void {
    this.#askStates();
    const now = Date.now();
    for (const { requestId } of this.#store.state.inbox.overdue(now)) void this.#overdue(requestId);
    const { route, inbox } = this.#store.state;
    const next = inbox.tick(now, route.name === "request" ? route.id : undefined);
    if (next !== inbox) this.#store.set({ inbox: next });
  }

  /** Asks what became of requests that wait: that one was answered on another device is not pushed by every gateway. */
  #askStates(): void {
    const { route, inbox, isOnline, phase } = this.#store.state;
    this.#ticks += 1;
    if (phase !== "ready" || !isOnline || document.visibilityState !== "visible" || this.#ticks % OPEN_TICKS !== 0)
      return;
    const open = route.name === "request" ? route.id : undefined;
    const isOfAll = this.#ticks % LIST_TICKS === 0;
    const pending = [...inbox.shown, ...inbox.waiting].filter(({ end }) => end === undefined);
    const asked = pending.filter(({ requestId }) => requestId === open || isOfAll).slice(0, MAX_ASKED);
    for (const { requestId } of asked) {
      void this.#store.approver.status(requestId).then(
        (status) => (status.state === "pendingApproval" ? undefined : this.#ended(requestId, status)),
        () => undefined,
      );
    }
  }

  /** Takes an event. What has to be kept before the gateway may forget it, is a promise. */
  #received(event: ChannelEvent): Promise<void> | undefined {
    const store = this.#store;
    if (event.type === "prompt-ack") return this.#prompts.acknowledged(event.requestId, event.status);
    if (event.type === "connected") {
      this.#hearsSince = Date.now();
      store.set({ isOnline: true, offlineReason: "" });
      void this.#prompts.sendAgain();
    } else if (event.type === "disconnected") store.set({ isOnline: false, offlineReason: event.reason });
    else if (event.type === "request") this.#arrived(newCard(event.item));
    else if (event.type === "gone") void this.#gone(event.requestId, event.end);
    else if (event.type === "session") this.#sessionHeard(event.sessionId);
    else store.set({ phase: "refused", isOnline: false, problem: event.error.message });
    return undefined;
  }

  #arrived(opened: Card): void {
    const { inbox, route, sent, pins } = this.#store.state;
    const now = this.#store.approver.http.clock.now();
    // It was opened a moment ago, with the pins of then.
    const card = trusted(opened, pins, now);
    if (sent.get(card.requestId)?.acceptedAt !== undefined) return;
    const isListOnScreen = route.name === "inbox" || window.matchMedia("(min-width: 1000px)").matches;
    const isOwn = card.request !== undefined && changeBehind(sent, card.request) !== undefined;
    // What a change has made takes the place of what was there.
    const added = inbox.add(card, isListOnScreen && !isOwn && document.visibilityState === "visible");
    this.#store.set({ inbox: card.request === undefined ? added : added.replaced(card.request, Date.now()) });
    if (card.error !== undefined) stopForSender(this.#store, card.error, now);
    if (card.request === undefined) return;
    void this.#again.heard([card.request]).catch(() => undefined);
    if (!isOwn || route.name !== "request" || route.id !== card.request.supersedes) return;
    nextCame();
    goInPlace({ name: "request", id: card.requestId });
  }

  /** A request has ended, or is not listed any more. It is the gateway's word, which closes a card and says nothing else. */
  async #gone(requestId: string, said: ExchangeEnd | undefined): Promise<void> {
    const end = said === undefined ? await this.#endOf(requestId) : ENDS[said];
    const { route, sent, inbox } = this.#store.state;
    const isOpen = route.name === "request" && route.id === requestId;
    // Whoever has answered on another device knows why it leaves.
    if (said !== undefined && end === "answered" && !isOpen && !sent.has(requestId))
      this.#store.set({ inbox: inbox.remove(requestId) });
    else {
      this.#end(requestId, end ?? "gone");
      if (end === "answered") await this.#nameWhoAnswered(requestId);
    }
  }

  /** A request has ended by the gateway's word, which may have the decision. */
  #ended(requestId: string, { state, decision }: ExchangeStatus): void {
    this.#end(requestId, ENDS[state]);
    const { inbox, profile } = this.#store.state;
    const request = inbox.get(requestId)?.request;
    if (ENDS[state] !== "answered" || request === undefined) return;
    const found = elsewhere(decision, request, this.#store.approver.identity, profile?.vouched ?? []);
    if (found !== undefined) this.#store.set({ inbox: inbox.answeredBy(requestId, found) });
  }

  async #nameWhoAnswered(requestId: string): Promise<void> {
    await this.#store.approver.status(requestId).then(
      (status) => this.#ended(requestId, status),
      () => undefined,
    );
  }

  /** The time of a request is over by this device's clock. Whether somebody has answered in time, the gateway knows. */
  async #overdue(requestId: string): Promise<void> {
    if (this.#asked.has(requestId)) return;
    this.#asked.add(requestId);
    const silence = this.#store.approver.http.clock.sleep(OVERDUE_MILLIS);
    const end = this.#store.state.isOnline ? await Promise.race([this.#endOf(requestId), silence]) : undefined;
    this.#asked.delete(requestId);
    this.#end(requestId, end === undefined || end === "hidden" ? "expired" : end);
  }

  /** How a request has ended, by the gateway's word; `undefined` if it does not say. */
  async #endOf(requestId: string): Promise<CardEnd | undefined> {
    return this.#store.approver.status(requestId).then(
      ({ state }) => ENDS[state],
      () => undefined,
    );
  }

  #end(requestId: string, end: CardEnd): void {
    const store = this.#store;
    if (store.state.sent.has(requestId)) {
      store.set({ inbox: store.state.inbox.remove(requestId) });
      // The answer of this device may have arrived without a word of it here.
      void this.#answers.look(requestId);
      return;
    }
    const now = Date.now();
    const wasHeard = store.state.isOnline && now - this.#hearsSince > HEARS_AFTER_MILLIS;
    store.set({ inbox: store.state.inbox.end(requestId, end, now, wasHeard) });
    setTimeout(() => this.#tick(), FADE_MILLIS + 100);
  }

  #sessionHeard(sessionId: string): void {
    const store = this.#store;
    if (isHistory(sessionId, store.state)) {
      store.set({ historyNews: store.state.historyNews + 1 });
      return;
    }
    store.set({ sessionNews: store.state.sessionNews + 1 });
    void this.#answers.heard(sessionId);
    const known = store.state.profile?.sessions ?? [];
    if (known[0] === sessionId) return;
    void store.change((profile) => ({
      ...profile,
      sessions: [sessionId, ...(profile.sessions ?? []).filter((id) => id !== sessionId)].slice(0, MAX_SESSIONS),
    }));
  }
}
