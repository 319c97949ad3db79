// What every part of the page shares: the state, the storage, and who this device is at its gateway.

import type { Database } from "../keys/database.ts";
import { changeProfile, type Profile } from "../keys/record.ts";
import { type Approver, Pins, Timestamp } from "../protocol/index.ts";
import { screenChanged } from "./guard.ts";
import { changedAreas, INITIAL, type State } from "./state.ts";

/** The shared part of the page. */
export class Store {
  state: State = INITIAL;
  readonly #listeners = new Set<() => void>();
  #database: Database | undefined;
  #approver: Approver | undefined;
  /** Other tabs hear of what changed in the storage. */
  readonly #tabs = new BroadcastChannel("countersign");

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(change: Partial<State>): void {
    const before = this.state;
    this.state = { ...before, ...change };
    const { pins, inbox } = this.state;
    // No card outlives the trust in its machine.
    if (pins !== before.pins)
      this.state = { ...this.state, inbox: inbox.trusting(pins, Timestamp.ofMillis(Date.now())) };
    const areas = changedAreas(before, this.state);
    if (areas.length > 0) screenChanged(...areas);
    for (const listener of this.#listeners) listener();
  }

  get database(): Database {
    if (this.#database === undefined) throw new Error("the page has not started");
    return this.#database;
  }

  set database(database: Database) {
    this.#database = database;
  }

  get approver(): Approver {
    if (this.#approver === undefined) throw new Error("this device has not joined");
    return this.#approver;
  }

  set approver(approver: Approver) {
    this.#approver = approver;
  }

  /** Changes the profile, here and in other tabs. */
  async change(change: (profile: Profile) => Profile): Promise<void> {
    const profile = await changeProfile(this.database, change);
    this.set({ profile, pins: Pins.parse(profile.pins) });
    this.changed();
  }

  /** Lets other tabs know that the storage has changed. */
  changed(): void {
    this.#tabs.postMessage("changed");
  }

  /** Calls `reload` when another tab has changed the storage. */
  listen(reload: () => void): void {
    this.#tabs.onmessage = reload;
  }
}
