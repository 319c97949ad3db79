// The cards of the inbox: which are on the screen, in which order, and how they leave it.

import {
  headline,
  type InboxItem,
  OpenError,
  type OpenedRequest,
  type Payload,
  type Pins,
  readPayload,
  Timestamp,
} from "../protocol/index.ts";

import type { Elsewhere } from "./elsewhere.ts";

/** Why a card needs no answer any more. */
export type CardEnd = "withdrawn" | "expired" | "answered" | "cancelled" | "hidden" | "gone";

/** One request on the screen. */
export interface Card {
  readonly requestId: string;
  readonly msgId: string | undefined;
  /** What was opened and checked. A decision is about exactly this object, which is the one that is shown. */
  readonly request: OpenedRequest | undefined;
  readonly payload: Payload | undefined;
  /** Why it can't be shown. */
  readonly error: OpenError | undefined;
  readonly headline: string;
  readonly end: CardEnd | undefined;
  /** When it ended, by this device's clock in milliseconds. */
  readonly endedAt: number;
  /** Who has answered it on another device, if that is known. */
  readonly elsewhere?: Elsewhere;
  /** Whether this device was listening when it ended, so that `endedAt` is the time of the answer. */
  readonly wasHeard?: boolean;
}

/** An ended card stays for this long, with the reason. */
export const FADE_MILLIS = 5_000;
/** One that has expired can be asked for again, which takes a moment to decide. */
export const EXPIRED_MILLIS = 60_000;

export function newCard({ requestId, msgId, opened }: InboxItem): Card {
  const base = { requestId, msgId, end: undefined, endedAt: 0 } as const;
  if (opened instanceof OpenError) {
    return { ...base, request: undefined, payload: undefined, error: opened, headline: "" };
  }
  const payload = readPayload(opened.artifactType, opened.payload);
  return { ...base, request: opened, payload, error: undefined, headline: headline(payload) };
}

/** A card as it is shown with these pins: a request whose machine is not trusted any more is one of an unknown sender. */
export function trusted(card: Card, pins: Pins, now: Timestamp): Card {
  const { request } = card;
  if (request === undefined || pins.isActive(request.sentBy.fingerprint, now)) return card;
  const error = new OpenError("unknown-sender", request.enforcerId, undefined, request.sentBy.fingerprint);
  return { ...card, request: undefined, payload: undefined, error, headline: "" };
}

/** The inbox. It does not change; each method returns another one. */
export class Inbox {
  /** What is on the screen, in its order. */
  readonly shown: readonly Card[];
  /** What has arrived since, and would move what is on the screen. */
  readonly waiting: readonly Card[];

  constructor(shown: readonly Card[] = [], waiting: readonly Card[] = []) {
    this.shown = shown;
    this.waiting = waiting;
  }

  get(requestId: string): Card | undefined {
    return [...this.shown, ...this.waiting].find((card) => card.requestId === requestId);
  }

  /** How many need an answer. */
  get pending(): number {
    return [...this.shown, ...this.waiting].filter((card) => card.end === undefined).length;
  }

  /** How many can be answered here: those that need an answer, and could be opened. */
  get answerable(): number {
    return this.open.length;
  }

  /** What can be answered here, in the order of the list. */
  get open(): Card[] {
    return [...this.shown, ...this.waiting].filter(({ end, request }) => end === undefined && request !== undefined);
  }

  /** Takes a request. One that is opened already stays as it is shown; what could not be opened may be opened now. */
  add(card: Card, isOnScreen: boolean): Inbox {
    const known = this.get(card.requestId);
    if (known !== undefined)
      return known.request === undefined && card.request !== undefined ? this.#replace(card) : this;
    if (isOnScreen && this.shown.some(({ end }) => end === undefined))
      return new Inbox(this.shown, [...this.waiting, card]);
    return new Inbox(sorted([...this.shown, card]), this.waiting);
  }

  /** Shows what has arrived. */
  merge(): Inbox {
    return this.waiting.length === 0 ? this : new Inbox(sorted([...this.shown, ...this.waiting]));
  }

  end(requestId: string, end: CardEnd, now: number, wasHeard = false): Inbox {
    const known = this.get(requestId);
    return known === undefined || known.end !== undefined
      ? this
      : this.#replace({ ...known, end, endedAt: now, wasHeard });
  }

  /** Says who has answered a request that was answered on another device. */
  answeredBy(requestId: string, elsewhere: Elsewhere): Inbox {
    const known = this.get(requestId);
    return known?.end === "answered" ? this.#replace({ ...known, elsewhere }) : this;
  }

  /**
   * A request of the same machine is replaced by one that has come. An expired one says so for a moment, and leaves; one that
   * was taken back for a new device leaves at once, so that nothing is listed twice.
   */
  replaced(by: OpenedRequest, now: number): Inbox {
    const known = this.get(by.supersedes ?? "");
    if (known?.request?.enforcerId !== by.enforcerId) return this;
    if (this.wasMoved(by)) return this.#replace({ ...known, endedAt: now - FADE_MILLIS });
    return known.end === "expired" ? this.#replace({ ...known, endedAt: now - EXPIRED_MILLIS + FADE_MILLIS }) : this;
  }

  /** Whether a request is one that was here a moment ago, taken back by its machine and asked anew for a new device. */
  wasMoved({ supersedes = "", enforcerId }: OpenedRequest): boolean {
    const known = this.get(supersedes);
    return known?.end === "withdrawn" && known.request?.enforcerId === enforcerId;
  }

  /** What waits although its time is over by this device's clock. */
  overdue(now: number): Card[] {
    const isOver = ({ end, request }: Card): boolean =>
      end === undefined && request !== undefined && !Timestamp.ofMillis(now).isBefore(request.expiresAt);
    return [...this.shown, ...this.waiting].filter(isOver);
  }

  /** Removes what ended a while ago, unless it is open. */
  tick(now: number, open: string | undefined): Inbox {
    const stays = (card: Card): boolean =>
      card.end === undefined ||
      card.requestId === open ||
      now - card.endedAt < (card.end === "expired" ? EXPIRED_MILLIS : FADE_MILLIS);
    const isSame = this.shown.every(stays) && this.waiting.every(stays);
    return isSame ? this : new Inbox(this.shown.filter(stays), this.waiting.filter(stays));
  }

  /** Every card as it is shown with these pins. */
  trusting(pins: Pins, now: Timestamp): Inbox {
    const shown = (card: Card): Card => trusted(card, pins, now);
    return new Inbox(this.shown.map(shown), this.waiting.map(shown));
  }

  remove(requestId: string): Inbox {
    const isOther = (card: Card): boolean => card.requestId !== requestId;
    return new Inbox(this.shown.filter(isOther), this.waiting.filter(isOther));
  }

  #replace(card: Card): Inbox {
    const replaced = (cards: readonly Card[]): Card[] =>
      cards.map((other) => (other.requestId === card.requestId ? card : other));
    return new Inbox(replaced(this.shown), replaced(this.waiting));
  }
}

/** Soonest to expire first; what can't be shown last. */
function sorted(cards: readonly Card[]): Card[] {
  const time = ({ request }: Card): number => request?.expiresAt.millis ?? Number.MAX_SAFE_INTEGER;
  return [...cards].sort((one, other) => time(one) - time(other));
}
