// Where this device's keys, credential and pins are kept: IndexedDB, which can store keys that nobody can export.

import { type DeviceKeys, openKeys, type StoredKeys } from "../protocol/device.ts";
import { CountersignError } from "../protocol/errors.ts";
import { Pins } from "../protocol/pins.ts";

/** Who this device is at a gateway. */
export interface Profile {
  readonly gateway: string;
  readonly tenant: string;
  readonly approverId: string;
  /** The API key. It lets somebody list and submit, and proves nothing to a machine: that needs the keys. */
  readonly credential: string;
}

/** What is said about a device whose keys are lost. It is no secret, and is kept apart from the keys. */
export interface Trace {
  readonly gateway: string;
  readonly approverId: string;
  readonly fingerprint: string;
}

/** What is found when the page starts. */
export type Loaded =
  /** Nobody has joined here. */
  | { readonly state: "new" }
  /** Everything is there, and the keys work. */
  | { readonly state: "ready"; readonly profile: Profile; readonly keys: DeviceKeys; readonly pins: Pins }
  /** Somebody has joined here, and the keys are gone or do not work: say so, and offer to join again. */
  | { readonly state: "lost"; readonly trace: Trace | undefined; readonly cause: unknown };

/** A storage for a few texts, such as `localStorage`. */
export interface TextStorage {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
}

/** The browser does not keep what this page needs. */
export class StorageError extends CountersignError {
  readonly code = "storage";
  readonly next =
    "Leave private browsing, allow this site to store data, or free some space; then load the page again.";

  constructor(cause: unknown) {
    super("this browser does not store what this page needs", { cause });
  }
}

interface Row extends Profile {
  readonly keys: StoredKeys;
  readonly pins: string;
}

const DATABASE = "countersign";
const STORE = "device";
const KEY = "self";
const TRACE = "countersign.device";

/** The store of one browser. */
export class KeyStore {
  readonly #factory: IDBFactory;
  readonly #traces: TextStorage;

  constructor(factory: IDBFactory, traces: TextStorage) {
    this.#factory = factory;
    this.#traces = traces;
  }

  /** What is there. Throws {@link StorageError} if the browser does not let us look. */
  async load(): Promise<Loaded> {
    const row = await this.#transact("readonly", (store) => store.get(KEY) as IDBRequest<Row | undefined>);
    const trace = this.#trace();
    if (row === undefined) {
      return trace === undefined
        ? { state: "new" }
        : { state: "lost", trace, cause: new Error("the keys are not there") };
    }
    try {
      const { gateway, tenant, approverId, credential } = row;
      const [keys, pins] = [await openKeys(row.keys), Pins.parse(row.pins)];
      if (trace !== undefined && trace.fingerprint !== keys.fingerprint) throw new Error("these are other keys");
      return { state: "ready", profile: { gateway, tenant, approverId, credential }, keys, pins };
    } catch (cause) {
      return { state: "lost", trace, cause };
    }
  }

  /** Keeps a new device, in place of an earlier one. */
  async create(profile: Profile, stored: StoredKeys): Promise<DeviceKeys> {
    const keys = await openKeys(stored);
    const row: Row = { ...profile, keys: stored, pins: new Pins().toText() };
    await this.#transact("readwrite", (store) => store.put(row, KEY));
    const { gateway, approverId } = profile;
    const trace: Trace = { gateway, approverId, fingerprint: keys.fingerprint };
    this.#traces.setItem(TRACE, JSON.stringify(trace));
    return keys;
  }

  /**
   * Changes the pins in one transaction, so that two tabs never overwrite each other's. An error of `change` changes nothing
   * and is passed on.
   */
  async changePins(change: (pins: Pins) => Pins): Promise<Pins> {
    const database = await this.#open();
    try {
      return await new Promise<Pins>((resolve, reject) => {
        const transaction = database.transaction(STORE, "readwrite", { durability: "strict" });
        const store = transaction.objectStore(STORE);
        let [changed, failure]: [Pins | undefined, unknown] = [undefined, undefined];
        const read = store.get(KEY) as IDBRequest<Row | undefined>;
        read.onsuccess = () => {
          try {
            if (read.result === undefined) throw new StorageError(new Error("the device is not there"));
            changed = change(Pins.parse(read.result.pins));
            store.put({ ...read.result, pins: changed.toText() }, KEY);
          } catch (error) {
            failure = error;
            transaction.abort();
          }
        };
        transaction.oncomplete = () => (changed === undefined ? reject(new StorageError(undefined)) : resolve(changed));
        transaction.onabort = () => reject(failure ?? new StorageError(transaction.error));
      });
    } finally {
      database.close();
    }
  }

  /** Deletes everything that this page has stored here. The keys can't be brought back. */
  async forget(): Promise<void> {
    await this.#transact("readwrite", (store) => store.clear());
    this.#traces.removeItem(TRACE);
  }

  #trace(): Trace | undefined {
    try {
      const text = this.#traces.getItem(TRACE);
      return text === null ? undefined : (JSON.parse(text) as Trace);
    } catch {
      return undefined;
    }
  }

  #open(): Promise<IDBDatabase> {
    return new Promise((resolve, reject) => {
      const opening = this.#factory.open(DATABASE, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
      opening.onsuccess = () => resolve(opening.result);
      opening.onerror = () => reject(new StorageError(opening.error));
      opening.onblocked = () => reject(new StorageError(new Error("another tab holds an older version of the store")));
    });
  }

  async #transact<T>(mode: IDBTransactionMode, action: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
    const database = await this.#open();
    try {
      return await new Promise<T>((resolve, reject) => {
        const transaction = database.transaction(STORE, mode, { durability: "strict" });
        const request = action(transaction.objectStore(STORE));
        transaction.oncomplete = () => resolve(request.result);
        transaction.onabort = () => reject(new StorageError(transaction.error));
      });
    } finally {
      database.close();
    }
  }
}

/** Asks the browser to keep what is stored here when space is short. Returns whether it does. */
export async function persist(storage: Pick<StorageManager, "persist" | "persisted"> | undefined): Promise<boolean> {
  if (storage === undefined) return false;
  return (await storage.persisted()) || (await storage.persist());
}
