// Everything that screens show, and which parts of the screen a change of it moves.

import type { Profile } from "../keys/record.ts";
import { type BuiltPrompt, type Editable, type Notices, Pins, type PromptStatus } from "../protocol/index.ts";
import type { Area } from "./guard.ts";
import { Inbox } from "./inbox.ts";
import { type Route, writeRoute } from "./route.ts";
import type { SentRecord } from "./sent.ts";

/** Where the page stands as a whole. */
export type Phase = "starting" | "unusable" | "welcome" | "lost" | "refused" | "ready";

/** A full-screen stop: a key is not what it was. */
export interface Stop {
  readonly id: string;
  readonly machine: string;
  /** Each change that it is about; what was read is remembered by these. */
  readonly changes: readonly string[];
  readonly kind: "key-changed" | "enforcer-replaced" | "other";
  readonly text: string;
  readonly next: string;
  /** The fingerprints of the keys that are used now, as far as they are known. Nothing proves them. */
  readonly claimed: readonly string[];
}

/** A prompt, with what became of it by the gateway's word. Times are RFC 3339. */
export interface PromptRecord {
  readonly requestId: string;
  readonly enforcerId: string;
  readonly text: string;
  /** The session that it is for; absent if it is for whoever works there. */
  readonly sessionId?: string;
  readonly sentAt: string;
  /** The machine does not take it after this time. */
  readonly expiresAt: string;
  /** "sending" until the gateway has answered. */
  readonly status: "sending" | PromptStatus;
  /** Whether it stops the agent of its session. */
  readonly isStop?: boolean;
  /** What is sent, for as long as it may have to be sent again. */
  readonly built?: BuiltPrompt;
}

/** What became of a request that was asked for again. The machine is the one whose keys have proven the request. */
export interface Again {
  readonly requestId: string;
  readonly enforcerId: string;
  /** When this device asked for it, as RFC 3339. */
  readonly askedAt?: string;
  /** The request that took its place, in the sealed words of the same machine. */
  readonly replacedBy?: string;
}

/** How this device is notified while the page is closed. */
export interface NoticesState {
  readonly status:
    | "unknown"
    | "off"
    | "on"
    /** The browser forbids it. */
    | "blocked"
    /** It was on, and needs a tap to be on again. */
    | "stopped"
    | "homeScreen"
    | "unsupported"
    /** The gateway can't notify anybody. */
    | "noRelay"
    /** The gateway did not say. */
    | "unread";
  /** By the gateway's word. */
  readonly read: Notices | undefined;
  /** Whether this device should be notified, and is not. */
  readonly isSilent: boolean;
  /** Whether it had stopped, and this page has repaired it. */
  readonly wasRepaired: boolean;
}

/** Everything that screens show. */
export interface State {
  readonly phase: Phase;
  readonly problem: string;
  readonly lost: { readonly id: string; readonly gateway: string } | undefined;
  readonly profile: Profile | undefined;
  readonly pins: Pins;
  readonly route: Route;
  /** The invitation or pairing link with which the page was opened. */
  readonly link: string | undefined;
  /** Whether the person has said that this device connects: then the link pairs without another question. */
  readonly isConnecting: boolean;
  readonly isOnline: boolean;
  readonly offlineReason: string;
  readonly inbox: Inbox;
  readonly sent: ReadonlyMap<string, SentRecord>;
  /** What was there before this device has changed it, by the request: for as long as the page is open. */
  readonly changed: ReadonlyMap<string, readonly Editable[]>;
  readonly prompts: readonly PromptRecord[];
  /** The newest first. */
  readonly again: readonly Again[];
  readonly sessionNews: number;
  /** Changes when a machine has news of what this person has answered. */
  readonly historyNews: number;
  /** Those that nobody has read yet. The first is on the screen, alone. */
  readonly stops: readonly Stop[];
  /** What was answered just now, before the next request came by itself. */
  readonly after: { readonly requestId: string; readonly next: string } | undefined;
  readonly notices: NoticesState;
  /** A recovery code that is shown, once, and the machines that could not be told of it. */
  readonly recovery: { readonly code: string; readonly untold: readonly string[] } | undefined;
}

export const INITIAL: State = {
  phase: "starting",
  problem: "",
  lost: undefined,
  profile: undefined,
  pins: new Pins(),
  route: { name: "inbox" },
  link: undefined,
  isConnecting: false,
  isOnline: false,
  offlineReason: "",
  inbox: new Inbox(),
  sent: new Map(),
  changed: new Map(),
  prompts: [],
  again: [],
  sessionNews: 0,
  historyNews: 0,
  stops: [],
  after: undefined,
  notices: { status: "unknown", read: undefined, isSilent: false, wasRepaired: false },
  recovery: undefined,
};

/** The parts of the screen in which a change of the state moves or replaces something. */
export function changedAreas(before: State, after: State): Area[] {
  if (frame(before) !== frame(after)) return ["list", "pane"];
  return [
    ...(list(before) === list(after) ? [] : (["list"] as const)),
    ...(pane(before) === pane(after) ? [] : (["pane"] as const)),
  ];
}

/** What decides which screen is shown, and where its parts are: without a connection there is a bar above both. */
function frame({ phase, stops, link, recovery, route, isOnline }: State): string {
  const isAlone = phase !== "ready" || stops.length > 0 || recovery !== undefined || link !== undefined;
  const alone = [phase, stops[0]?.id, recovery?.code, link];
  return JSON.stringify(isAlone ? alone : [...alone, writeRoute(route), isOnline]);
}

/** The cards with what makes them higher, and what is above them: the button for arrivals, and whether this
 * device is notified. */
function list({ inbox, again, notices }: State): string {
  const cards = inbox.shown.map(({ requestId, end, request }) => [
    requestId,
    end,
    request === undefined,
    end === undefined ? [] : again.filter((one) => one.requestId === requestId),
  ]);
  return JSON.stringify([cards, inbox.waiting.length > 0, notices.isSilent, notices.wasRepaired]);
}

/** What is at the place of the answer bar of the open request. */
function pane({ route, inbox, sent, again }: State): string {
  if (route.name !== "request") return "";
  const [card, record] = [inbox.get(route.id), sent.get(route.id)];
  const isAccepted = record?.acceptedAt !== undefined;
  const answer = [record !== undefined, isAccepted, record?.failed?.kind];
  const became = again.filter(({ requestId }) => requestId === route.id);
  return JSON.stringify([
    card?.end,
    card?.elsewhere,
    card !== undefined && card.request === undefined,
    ...answer,
    became,
  ]);
}
