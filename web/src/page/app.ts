// The page without its screens: who this device is, what waits, and what was answered. Screens read it and call it.

import { Database } from "../keys/database.ts";
import {
  changeProfile,
  type Found,
  findProfile,
  forget,
  keepProfile,
  keepStorage,
  type Profile,
  prepareKeys,
} from "../keys/profile.ts";
import {
  Approver,
  ApproverChannel,
  type ChannelEvent,
  type DeviceKeys,
  Http,
  type JoinLink,
  join,
  OpenError,
  type Paired,
  PairingError,
  type Pin,
  PinError,
  Pins,
  type PromptStatus,
  visible,
} from "../protocol/index.ts";
import { texts } from "../texts.ts";
import { screenChanged } from "./guard.ts";
import { FADE_MILLIS, Inbox, newCard } from "./inbox.ts";
import { type Route, readRoute } from "./route.ts";
import { interrupted, isSettled, type SentRecord, submit, watch } from "./sent.ts";

/** Where the page stands as a whole. */
export type Phase = "starting" | "unusable" | "welcome" | "lost" | "refused" | "ready";

/** A full-screen stop: a key is not what it was. */
export interface Stop {
  readonly id: string;
  readonly machine: string;
  readonly kind: "key-changed" | "enforcer-replaced" | "other";
  readonly text: string;
  readonly next: string;
}

/** What became of a prompt, by the gateway's word. */
export interface PromptRecord {
  readonly requestId: string;
  readonly enforcerId: string;
  readonly text: string;
  readonly status: PromptStatus;
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
  readonly isOnline: boolean;
  readonly offlineReason: string;
  readonly inbox: Inbox;
  readonly sent: ReadonlyMap<string, SentRecord>;
  readonly prompts: readonly PromptRecord[];
  readonly sessionNews: number;
  readonly stop: Stop | undefined;
  /** A recovery code that is shown, once. */
  readonly recoveryCode: string | undefined;
}

const INITIAL: State = {
  phase: "starting",
  problem: "",
  lost: undefined,
  profile: undefined,
  pins: new Pins(),
  route: { name: "inbox" },
  link: undefined,
  isOnline: false,
  offlineReason: "",
  inbox: new Inbox(),
  sent: new Map(),
  prompts: [],
  sessionNews: 0,
  stop: undefined,
  recoveryCode: undefined,
};

/** Seconds after which the state of the open request is asked for, and that of those in the list; and how many at once. */
const OPEN_TICKS = 3;
const LIST_TICKS = 9;
const MAX_ASKED = 20;

/** The page. */
export class App {
  #ticks = 0;
  state: State = INITIAL;
  readonly #listeners = new Set<() => void>();
  #database: Database | undefined;
  #approver: Approver | undefined;
  #channel: ApproverChannel | undefined;
  readonly #watches = new Map<string, AbortController>();
  /** Other tabs hear of what changed in the storage. */
  readonly #tabs = new BroadcastChannel("countersign");

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.#listeners) listener();
  }

  get database(): Database {
    if (this.#database === undefined) throw new Error("the page has not started");
    return this.#database;
  }

  get approver(): Approver {
    if (this.#approver === undefined) throw new Error("this device has not joined");
    return this.#approver;
  }

  /** Starts the page, with the link that it was opened with. */
  async start(link: string | undefined): Promise<void> {
    this.set({ link, route: readRoute(location.hash) });
    window.addEventListener("hashchange", () => this.#routeChanged());
    window.addEventListener("online", () => this.#channel?.wake());
    window.addEventListener("offline", () => this.set({ isOnline: false }));
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.#channel?.wake();
    });
    this.#tabs.onmessage = () => void this.#reload();
    setInterval(() => this.#tick(), 1_000);
    try {
      this.#database = await Database.open();
      await this.#found(await findProfile(this.#database));
    } catch (error) {
      this.set({ phase: "unusable", problem: messageOf(error) });
    }
  }

  async #found(found: Found): Promise<void> {
    if (found.kind === "none") this.set({ phase: "welcome" });
    else if (found.kind === "lost") this.set({ phase: "lost", lost: { id: found.id, gateway: found.gateway } });
    else await this.#ready(found.profile, found.keys);
  }

  async #ready(profile: Profile, keys: DeviceKeys): Promise<void> {
    const http = new Http({ gateway: profile.gateway, credential: profile.credential });
    this.#approver = new Approver(http, profile.id, keys);
    const sent = ((await this.database.allSent()) as SentRecord[]).map(interrupted);
    this.set({
      phase: "ready",
      profile,
      pins: Pins.parse(profile.pins),
      sent: new Map(sent.map((record) => [record.requestId, record])),
    });
    screenChanged();
    for (const record of sent) this.#watch(record);
    this.#channel = new ApproverChannel(
      this.#approver,
      () => this.state.pins,
      (event) => this.#received(event),
    );
    void this.#channel.run();
  }

  #routeChanged(): void {
    const route = readRoute(location.hash);
    const inbox = route.name === "inbox" ? this.state.inbox.merge() : this.state.inbox;
    screenChanged();
    this.set({ route, inbox });
  }

  /** Another tab has changed the storage. */
  async #reload(): Promise<void> {
    const found = await findProfile(this.database).catch((): Found => ({ kind: "none" }));
    if (found.kind !== "profile") {
      location.reload();
      return;
    }
    if (this.state.phase !== "ready") {
      await this.#ready(found.profile, found.keys);
      return;
    }
    const arePinsNew = found.profile.pins !== this.state.profile?.pins;
    const sent = (await this.database.allSent()) as SentRecord[];
    const records = new Map(sent.map((record) => [record.requestId, record]));
    const inbox = sent.reduce(
      (all, { requestId, acceptedAt }) => (acceptedAt === undefined ? all : all.end(requestId, "answered", Date.now())),
      this.state.inbox,
    );
    this.set({ profile: found.profile, pins: Pins.parse(found.profile.pins), sent: records, inbox });
    if (arePinsNew) this.#channel?.reopen();
  }

  /** Asks what became of requests that wait: an answer on another device is not pushed. */
  #askStates(): void {
    const { route, inbox, isOnline, phase } = this.state;
    this.#ticks += 1;
    if (phase !== "ready" || !isOnline || document.visibilityState !== "visible" || this.#ticks % OPEN_TICKS !== 0)
      return;
    const open = route.name === "request" ? route.id : undefined;
    const isOfAll = this.#ticks % LIST_TICKS === 0;
    const pending = [...inbox.shown, ...inbox.waiting].filter(({ end }) => end === undefined);
    const asked = pending.filter(({ requestId }) => requestId === open || isOfAll).slice(0, MAX_ASKED);
    for (const { requestId } of asked) {
      void this.approver.status(requestId).then(
        ({ state }) => (state === "pendingApproval" ? undefined : this.#gone(requestId, state === "withdrawn")),
        () => undefined,
      );
    }
  }

  #tick(): void {
    this.#askStates();
    const { route, inbox } = this.state;
    const next = inbox.tick(Date.now(), route.name === "request" ? route.id : undefined);
    if (next === inbox) return;
    if (next.shown.length !== inbox.shown.length) screenChanged();
    this.set({ inbox: next });
  }

  #received(event: ChannelEvent): void {
    if (event.type === "connected") this.set({ isOnline: true, offlineReason: "" });
    else if (event.type === "disconnected") this.set({ isOnline: false, offlineReason: event.reason });
    else if (event.type === "request") this.#arrived(newCard(event.item));
    else if (event.type === "gone") void this.#gone(event.requestId, event.wasWithdrawn);
    else if (event.type === "prompt-ack") this.#promptAcknowledged(event.requestId, event.status);
    else if (event.type === "session") this.#sessionHeard(event.sessionId);
    else this.set({ phase: "refused", isOnline: false, problem: event.error.message });
  }

  #arrived(card: ReturnType<typeof newCard>): void {
    const { inbox, route, sent, pins, profile } = this.state;
    if (sent.get(card.requestId)?.acceptedAt !== undefined) return;
    const isListOnScreen = route.name === "inbox" || window.matchMedia("(min-width: 1000px)").matches;
    this.set({ inbox: inbox.add(card, isListOnScreen && document.visibilityState === "visible") });
    const machine = card.error?.reason === "unknown-sender" ? (card.error.detail ?? "") : "";
    const isPinned = pins.active("enforcer", this.approver.http.clock.now(), machine).length > 0;
    const id = `sender ${machine}`;
    if (machine !== "" && isPinned && !(profile?.readStops ?? []).includes(id) && card.error instanceof OpenError) {
      this.stop({ id, machine, kind: "key-changed", text: card.error.message, next: card.error.next });
    }
  }

  async #gone(requestId: string, wasWithdrawn: boolean): Promise<void> {
    if (this.state.sent.has(requestId)) {
      this.set({ inbox: this.state.inbox.remove(requestId) });
      return;
    }
    const state = wasWithdrawn
      ? "withdrawn"
      : await this.approver
          .status(requestId)
          .then((status) => status.state)
          .catch(() => "gone");
    const end =
      state === "withdrawn" || state === "expired" || state === "cancelled"
        ? state
        : state === "gone"
          ? "gone"
          : "answered";
    this.set({ inbox: this.state.inbox.end(requestId, end, Date.now()) });
    screenChanged();
    setTimeout(() => this.#tick(), FADE_MILLIS + 100);
  }

  stop(stop: Stop): void {
    screenChanged();
    this.set({ stop });
  }

  /** A person has read a stop. What it was about stays refused. */
  async stopRead(): Promise<void> {
    const { stop } = this.state;
    screenChanged();
    this.set({ stop: undefined });
    if (stop !== undefined)
      await this.change((profile) => ({ ...profile, readStops: [...(profile.readStops ?? []), stop.id] }));
  }

  /** Joins with an invitation. The keys are made and kept first. */
  async join(link: JoinLink): Promise<void> {
    await keepStorage();
    await prepareKeys(this.database);
    const joined = await join(link);
    if (joined.role !== "approver") throw new Error(texts.joinFailedRole);
    const { gateway, credential, tenant, id } = joined;
    await keepProfile(this.database, { gateway, credential, tenant, id, joinedAt: new Date().toISOString() });
    this.set({ link: undefined });
    await this.#found(await findProfile(this.database));
    this.#changed();
  }

  /** Changes the profile, here and in other tabs. */
  async change(change: (profile: Profile) => Profile): Promise<void> {
    const profile = await changeProfile(this.database, change);
    this.set({ profile, pins: Pins.parse(profile.pins) });
    this.#changed();
  }

  #changed(): void {
    this.#tabs.postMessage("changed");
  }

  /** Changes whom this device trusts; the requests that wait are opened again. */
  async changePins(change: (pins: Pins) => Pins, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.change((profile) => ({
      ...profile,
      pins: change(Pins.parse(profile.pins)).toText(),
      labels: { ...profile.labels, ...labels },
    }));
    this.#channel?.reopen();
  }

  /** Keeps a pairing that was proven by its link, or by a person who compared digits. A changed key is a stop. */
  async keepPairing(paired: Paired): Promise<boolean> {
    const { pin, enforcerLabel } = paired;
    try {
      await this.changePins((pins) => pins.add(pin), { [pin.party.id]: enforcerLabel });
      return true;
    } catch (error) {
      if (!(error instanceof PinError)) throw error;
      this.stopForPin(pin, error);
      return false;
    }
  }

  stopForPin(pin: Pin, error: PinError): void {
    const kind = error.reason === "key-changed" ? "key-changed" : "other";
    this.stop({ id: `pin ${pin.fingerprint}`, machine: pin.party.id, kind, text: error.message, next: error.next });
  }

  /** Shows a stop for keys that the gateway has replaced; `false` for other errors. */
  stopForPairing(machine: string, error: unknown): boolean {
    if (!(error instanceof PairingError)) return false;
    const kind = error.reason === "enforcer-replaced" ? "enforcer-replaced" : "other";
    this.stop({ id: `pairing ${machine}`, machine, kind, text: error.message, next: error.next });
    return true;
  }

  /** Keeps a signed decision and sends it. What is kept before it is sent can be sent again. */
  async answer(record: SentRecord): Promise<void> {
    await this.#keep(record);
    const result = await submit(this.approver, record);
    await this.#keep(result);
    if (result.acceptedAt !== undefined) this.set({ inbox: this.state.inbox.remove(record.requestId) });
    this.#watch(result);
  }

  /** Sends a decision again that did not reach the gateway. */
  async answerAgain(requestId: string): Promise<void> {
    const record = this.state.sent.get(requestId);
    if (record !== undefined) await this.answer(record);
  }

  async #keep(record: SentRecord): Promise<void> {
    await this.database.keepSent(record);
    this.set({ sent: new Map([...this.state.sent, [record.requestId, record]]) });
    this.#changed();
  }

  #watch(record: SentRecord): void {
    if (isSettled(record) || record.acceptedAt === undefined) return;
    this.#watches.get(record.requestId)?.abort();
    const ending = new AbortController();
    this.#watches.set(record.requestId, ending);
    void watch(
      this.approver,
      () => this.state.pins,
      record,
      (seen) => this.#keep(seen),
      ending.signal,
    );
  }

  #promptAcknowledged(requestId: string, status: PromptStatus): void {
    const changed = (record: PromptRecord): PromptRecord =>
      record.requestId === requestId ? { ...record, status } : record;
    this.set({ prompts: this.state.prompts.map(changed) });
  }

  /** A prompt was sent. */
  promptSent(record: PromptRecord): void {
    this.set({ prompts: [record, ...this.state.prompts].slice(0, 50) });
  }

  #sessionHeard(sessionId: string): void {
    this.set({ sessionNews: this.state.sessionNews + 1 });
    // A receipt comes as a session of its own.
    for (const [requestId] of this.#watches) {
      const record = this.state.sent.get(requestId);
      if (record !== undefined && !isSettled(record)) this.#watch(record);
    }
    const known = this.state.profile?.sessions ?? [];
    if (known[0] === sessionId) return;
    void this.change((profile) => ({
      ...profile,
      sessions: [sessionId, ...(profile.sessions ?? []).filter((id) => id !== sessionId)].slice(0, 100),
    }));
  }

  /** Shows what has arrived meanwhile. */
  showArrivals(): void {
    screenChanged();
    this.set({ inbox: this.state.inbox.merge() });
  }

  /** Removes a request from this person's inbox, without an answer. */
  async hide(requestId: string): Promise<void> {
    await this.approver.hide(requestId);
    screenChanged();
    this.set({ inbox: this.state.inbox.remove(requestId) });
  }

  /** Removes the keys and everything else from this browser. */
  async forget(): Promise<void> {
    this.#channel?.stop();
    for (const ending of this.#watches.values()) ending.abort();
    await forget(this.database);
    this.#changed();
    history.replaceState(null, "", "/");
    location.reload();
  }
}

/** The words of an error: what happened, and what to do next. */
export function messageOf(error: unknown): string {
  if (error instanceof Error && "next" in error && typeof error.next === "string")
    return visible(`${sentence(error.message)} ${error.next}`);
  return visible(error instanceof Error ? sentence(error.message) : String(error));
}

function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
