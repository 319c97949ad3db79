// Whether this device is notified while the page is closed: asked for, kept as the push service has it, repaired and ended.

import { changeNotices, keyOf, register } from "../notices/register.ts";
import {
  CallError,
  deleteChannel,
  type NoticeAccess,
  type NoticeChannel,
  type Notices as NoticesRead,
  putQuietHours,
  putWebhook,
  putWeeklyTest,
  type QuietHours,
  readNotices,
  type TestResult,
  testChannel,
} from "../protocol/index.ts";
import { texts } from "../texts.ts";
import { deviceName } from "./platform.ts";
import { pushSupport, subscribe, subscription } from "./push.ts";
import type { NoticesState } from "./state.ts";
import type { Store } from "./store.ts";
import { FORMATS, type HookFormat } from "./webhook.ts";

/** After a test, the device has this time to say that it was shown. */
const TEST_MILLIS = 15_000;

/** That it was repaired is said for this time. */
const REPAIRED_MILLIS = 20_000;

/** This gateway has no such interface. */
const NO_INTERFACE: readonly number[] = [404, 405, 501];

/** The minutes by which this device's clock is ahead of UTC. */
export const utcOffset = (): number => 0 - new Date().getTimezoneOffset();

/** How this device is notified. */
export class Notices {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  get #access(): NoticeAccess {
    const { http, identity } = this.#store.approver;
    return { http, id: identity.id };
  }

  /** The name of this device's channel: the same for as long as it has its keys. */
  get channel(): string {
    return this.#store.approver.identity.keys.fingerprint;
  }

  #set(change: Partial<NoticesState>): void {
    const { state } = this.#store;
    const next = { ...state.notices, ...change };
    const isWanted = state.profile?.notices?.registered !== undefined;
    const isFailing = next.status === "on" && ownChannel(next, this.channel)?.failing !== undefined;
    const isSilent = isWanted && (isFailing || next.status === "blocked" || next.status === "stopped");
    this.#store.set({ notices: { ...next, isSilent } });
  }

  /** Looks at the gateway and at this browser, and repairs what differs. Some systems never say that something has changed. */
  async check(): Promise<void> {
    const look = (): Promise<void> => this.#check();
    // Two tabs would each make an address of their own.
    const locks = globalThis.navigator?.locks;
    await (locks === undefined ? look() : locks.request("countersign-notices", look));
  }

  async #check(): Promise<void> {
    let read: NoticesRead;
    try {
      read = await readNotices(this.#access);
    } catch (error) {
      const isAbsent = error instanceof CallError && NO_INTERFACE.includes(error.status);
      this.#set({ status: isAbsent ? "noRelay" : "unread" });
      return;
    }
    this.#set({ read });
    const wanted = this.#store.state.profile?.notices?.registered !== undefined;
    const status = wanted ? await this.#repaired(read).catch(() => "stopped" as const) : this.#unregistered();
    this.#set({ status });
    await this.#refreshOffset(read).catch(() => undefined);
  }

  #unregistered(): NoticesState["status"] {
    const support = pushSupport();
    if (support !== "yes") return support === "none" ? "unsupported" : "homeScreen";
    return Notification.permission === "denied" ? "blocked" : "off";
  }

  /** What became of a device that wants to be notified. */
  async #repaired(read: NoticesRead): Promise<NoticesState["status"]> {
    if (pushSupport() !== "yes") return this.#unregistered();
    if (Notification.permission !== "granted") return Notification.permission === "denied" ? "blocked" : "stopped";
    const registered = this.#store.state.profile?.notices?.registered;
    const own = read.channels.find(({ id }) => id === this.channel);
    const isGone = own?.failing?.reason === "gone";
    let current = await subscription();
    const isOfKey = current !== undefined && (keyOf(current) ?? registered?.vapidKey) === read.vapidPublicKey;
    const isKnown = current !== undefined && own !== undefined && current.endpoint === registered?.endpoint;
    if (isKnown && isOfKey && !isGone && registered?.label === this.#label) return "on";
    const wasBroken = !isKnown || !isOfKey || isGone;
    if (current !== undefined && (!isOfKey || (isGone && current.endpoint === registered?.endpoint))) {
      await current.unsubscribe();
      current = undefined;
    }
    await this.#register(current ?? (await subscribe(read.vapidPublicKey)), read.vapidPublicKey);
    if (wasBroken) this.#sayRepaired();
    return "on";
  }

  #sayRepaired(): void {
    this.#set({ wasRepaired: true });
    void this.#store.approver.http.clock.sleep(REPAIRED_MILLIS).then(() => this.#set({ wasRepaired: false }));
  }

  get #label(): string {
    const { profile } = this.#store.state;
    return profile?.device ?? deviceName(profile?.id ?? "");
  }

  /** Where a notification leads to. */
  get #page(): string {
    return new URL("/", location.href).href;
  }

  async #register(subscribed: PushSubscription, vapidKey: string): Promise<void> {
    const registered = await register(this.#access, subscribed, {
      channel: this.channel,
      label: this.#label,
      page: this.#page,
      vapidKey,
    }).catch((error: unknown) => {
      throw error instanceof CallError ? new Error(REFUSED[error.status] ?? error.message, { cause: error }) : error;
    });
    await this.#store.change((profile) => changeNotices(profile, { registered }));
    await this.#reread();
  }

  /** Asks the person, and has this device notified. To be called on a tap. Throws with words for a person. */
  async switchOn(): Promise<void> {
    const permission = await Notification.requestPermission();
    if (permission === "denied") {
      this.#set({ status: "blocked" });
      return;
    }
    if (permission !== "granted") throw new Error(texts.notifyDismissed);
    const { vapidPublicKey } = await readNotices(this.#access);
    let current = await subscription();
    if (current !== undefined && keyOf(current) !== vapidPublicKey) {
      await current.unsubscribe();
      current = undefined;
    }
    const subscribed =
      current ??
      (await subscribe(vapidPublicKey).catch((cause: unknown) => {
        throw new Error(texts.notifyNoService, { cause });
      }));
    await this.#register(subscribed, vapidPublicKey);
    this.#set({ status: "on", wasRepaired: false });
  }

  /** Has an address called, or changes it. Returns the secret of its signatures. Throws with words for a person. */
  async setWebhook(channel: string, { label, endpoint, format }: Hook): Promise<string> {
    const draft = { label, endpoint, page: this.#page, ...FORMATS[format] };
    const secret = await putWebhook(this.#access, channel, draft).catch((error: unknown) => {
      if (!(error instanceof CallError)) throw error;
      const words = error.reason === "unreachable" ? texts.relayUnreachable : HOOK_REFUSED[error.status];
      throw words === undefined ? error : new Error(words, { cause: error });
    });
    // It is set, whether or not it can be read again.
    await this.#reread().catch(() => undefined);
    return secret;
  }

  async #reread(): Promise<void> {
    this.#set({ read: await readNotices(this.#access) });
  }

  /** Ends a channel; if it is this device's own, its subscription too. */
  async stop(channel: string): Promise<void> {
    await deleteChannel(this.#access, channel);
    if (channel === this.channel) {
      await (await subscription())?.unsubscribe();
      await this.#store.change(({ notices: { registered: _, ...rest } = {}, ...profile }) => ({
        ...profile,
        notices: rest,
      }));
    }
    await this.check();
  }

  /** Sends a test. `isShown` says whether the device has said so in time, if it says so at all. */
  async test(channel: string, saysSo = true): Promise<TestResult & { readonly isShown?: boolean }> {
    const { http } = this.#store.approver;
    const before = this.#displayed(channel);
    const result = await testChannel(this.#access, channel);
    const end = http.clock.now().plus(result.isAccepted && saysSo ? TEST_MILLIS : 0);
    for (;;) {
      await this.#reread();
      if (this.#displayed(channel) !== before) return { ...result, isShown: true };
      if (!http.clock.now().isBefore(end)) return { ...result, isShown: false };
      await http.clock.sleep(1_000);
    }
  }

  #displayed(channel: string): string {
    const known = this.#store.state.notices.read?.channels.find(({ id }) => id === channel);
    return `${known?.displayedAt ?? ""}`;
  }

  async setQuietHours(hours: Pick<QuietHours, "from" | "to"> | undefined): Promise<void> {
    const utcOffsetMinutes = utcOffset();
    await putQuietHours(this.#access, hours === undefined ? undefined : { ...hours, utcOffsetMinutes });
    await this.#store.change((profile) => changeNotices(profile, { utcOffsetMinutes }));
    await this.#reread();
  }

  /** The clock of this device was changed, by its owner's travels or by the season: the quiet hours go with it. */
  async #refreshOffset({ quietHours }: NoticesRead): Promise<void> {
    const known = this.#store.state.profile?.notices?.utcOffsetMinutes;
    if (quietHours !== undefined && known !== undefined && known !== utcOffset())
      await this.setQuietHours({ from: quietHours.from, to: quietHours.to });
  }

  async setWeeklyTest(isWanted: boolean): Promise<void> {
    await putWeeklyTest(this.#access, isWanted).catch((error: unknown) => {
      const isOffline = error instanceof CallError && error.reason === "unreachable";
      throw isOffline ? new Error(texts.relayUnreachable, { cause: error }) : error;
    });
    await this.#reread();
  }

  async setShowsRequests(showsRequests: boolean): Promise<void> {
    await this.#store.change((profile) => changeNotices(profile, { showsRequests }));
  }

  /** The person was asked once, and is not asked again. */
  async offered(): Promise<void> {
    await this.#store.change((profile) => changeNotices(profile, { wasOffered: true }));
  }
}

/** An address that is called, as a person has entered it. */
export interface Hook {
  readonly label: string;
  readonly endpoint: string;
  readonly format: HookFormat;
}

const REFUSED: Readonly<Record<number, string>> = { 409: texts.notifyTooMany, 422: texts.notifyNotAllowed };
const HOOK_REFUSED: Readonly<Record<number, string>> = { 409: texts.hookTooMany, 422: texts.hookNotAllowed };

/** This device's own channel. */
export function ownChannel({ read }: NoticesState, channel: string): NoticeChannel | undefined {
  return read?.channels.find(({ id }) => id === channel);
}
