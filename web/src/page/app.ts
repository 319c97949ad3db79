// The page without its screens: how it starts, joins a gateway, and forgets it. `store.ts` has what all parts share, `live.ts`
// what arrives, `answers.ts` and `prompts.ts` what was sent, `again.ts` what was asked for again, `notices.ts`
// whether this device is notified, `trust.ts` who is trusted.

import { Database } from "../keys/database.ts";
import { type Found, findProfile, forget, keepProfile, keepStorage, prepareKeys } from "../keys/profile.ts";
import { type Profile, readProfile } from "../keys/record.ts";
import {
  Approver,
  type ConnectLink,
  type DeviceKeys,
  formatPairingLink,
  Http,
  type JoinLink,
  join,
  Pins,
} from "../protocol/index.ts";
import { texts } from "../texts.ts";
import { AskedAgain } from "./again.ts";
import { Answers } from "./answers.ts";
import { Live } from "./live.ts";
import { messageOf } from "./messages.ts";
import { Notices } from "./notices.ts";
import { Prompts } from "./prompts.ts";
import { checkReach } from "./reach.ts";
import { readRoute } from "./route.ts";
import { Store } from "./store.ts";

/** The page. */
export class App extends Store {
  readonly answers = new Answers(this);
  readonly prompts = new Prompts(this);
  readonly again = new AskedAgain(this);
  readonly notices = new Notices(this);
  readonly live = new Live(this, this.answers, this.prompts, this.again);

  /** Starts the page, with the link that it was opened with. */
  async start(link: string | undefined): Promise<void> {
    this.set({ link, route: readRoute(location.hash) });
    window.addEventListener("hashchange", () => this.#routeChanged());
    window.addEventListener("online", () => {
      this.live.networkBack();
      if (this.state.notices.status === "unread") void this.notices.check();
    });
    window.addEventListener("offline", () => this.live.networkGone());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState !== "visible") return;
      this.live.wake();
      // The person may come from the settings of the phone.
      if (this.state.phase === "ready") void this.notices.check();
    });
    this.listen(() => void this.#reload());
    try {
      this.database = await Database.open();
      await this.#found(await findProfile(this.database));
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
    this.approver = new Approver(http, profile.id, keys);
    await this.prompts.load();
    await this.again.load();
    await this.answers.load();
    this.set({ phase: "ready", profile, pins: Pins.parse(profile.pins) });
    this.live.start();
    void this.notices.check();
  }

  #routeChanged(): void {
    const route = readRoute(location.hash);
    const inbox = route.name === "inbox" ? this.state.inbox.merge() : this.state.inbox;
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
    await this.answers.reload();
    await this.prompts.load();
    await this.again.load();
    // Nothing comes between reading and showing, or a change that this tab makes meanwhile would be undone.
    const profile = await readProfile(this.database);
    if (profile !== undefined) this.set({ profile, pins: Pins.parse(profile.pins) });
  }

  /** Joins with one code, and goes on to pair with it. Whoever has joined is not undone by a pairing that fails. */
  async connect({ invitation, pairing }: ConnectLink, device: string): Promise<void> {
    await this.join(invitation, device, formatPairingLink(pairing));
  }

  /** Joins with an invitation. The keys are made and kept first. */
  async join(link: JoinLink, device = "", next?: string): Promise<void> {
    await checkReach(link.gateway);
    await keepStorage();
    await prepareKeys(this.database);
    const joined = await join(link);
    if (joined.role !== "approver") throw new Error(texts.joinFailedRole);
    const { gateway, credential, tenant, id } = joined;
    const joinedAt = new Date().toISOString();
    await keepProfile(this.database, {
      gateway,
      credential,
      tenant,
      id,
      joinedAt,
      ...(device === "" ? {} : { device }),
    });
    this.set({ link: next, isConnecting: next !== undefined });
    await this.#found(await findProfile(this.database));
    this.changed();
  }

  /** Removes the keys and everything else from this browser. */
  async forget(): Promise<void> {
    this.live.stop();
    this.answers.stop();
    // A device that is forgotten is not notified any more; without a network, its push service says so later.
    if (this.state.profile?.notices?.registered !== undefined)
      await this.notices.stop(this.notices.channel).catch(() => undefined);
    await forget(this.database);
    this.changed();
    history.replaceState(null, "", "/");
    location.reload();
  }
}
