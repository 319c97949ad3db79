// The storage of the page: IndexedDB, which keeps keys that nobody can read out.

import { CountersignError } from "../protocol/index.ts";

const NAME = "countersign";
const VALUES = "values";
const SENT = "sent";

/** This browser does not keep what the page needs. */
export class StorageError extends CountersignError {
  readonly code = "storage";
  readonly next =
    "Leave private browsing, allow this site to store data, or free some space; then load the page again.";

  constructor(cause: unknown) {
    super("this browser does not store what this page needs", { cause });
  }
}

function request<T>(source: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    source.onsuccess = () => resolve(source.result);
    source.onerror = () => reject(new StorageError(source.error));
  });
}

function done(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new StorageError(transaction.error));
    transaction.oncomplete = () => resolve();
    transaction.onerror = fail;
    transaction.onabort = fail;
  });
}

/** An open database. */
export class Database {
  readonly #database: IDBDatabase;
  readonly #factory: IDBFactory;

  private constructor(database: IDBDatabase, factory: IDBFactory) {
    this.#database = database;
    this.#factory = factory;
  }

  static async open(factory: IDBFactory = indexedDB): Promise<Database> {
    const opening = factory.open(NAME, 1);
    opening.onupgradeneeded = () => {
      opening.result.createObjectStore(VALUES);
      opening.result.createObjectStore(SENT, { keyPath: "requestId" });
    };
    const database = await request(opening);
    // Another tab that forgets this device deletes the database.
    database.onversionchange = () => database.close();
    return new Database(database, factory);
  }

  /** A value, or `undefined`. */
  async get(key: string): Promise<unknown> {
    return request(this.#database.transaction(VALUES).objectStore(VALUES).get(key));
  }

  /** Replaces a value by what `change` makes of it, in one transaction, so that no other tab comes between. */
  async update<T>(key: string, change: (before: unknown) => T): Promise<T> {
    return this.#change(VALUES, key, change);
  }

  async #change<T>(name: typeof VALUES | typeof SENT, key: string, change: (before: unknown) => T): Promise<T> {
    const transaction = this.#database.transaction(name, "readwrite", { durability: "strict" });
    const [store, end] = [transaction.objectStore(name), done(transaction)];
    const before = await request(store.get(key));
    let after: T;
    try {
      after = change(before);
    } catch (error) {
      end.catch(() => undefined);
      transaction.abort();
      throw error;
    }
    // A record has its key in it.
    store.put(after, name === SENT ? undefined : key);
    await end;
    return after;
  }

  /** Keeps what `change` makes of the record of a decision, in one transaction. What it throws changes nothing. */
  async changeSent<T extends { readonly requestId: string }>(
    requestId: string,
    change: (before: unknown) => T,
  ): Promise<T> {
    return this.#change(SENT, requestId, change);
  }

  /** The records of all decisions. */
  async allSent(): Promise<unknown[]> {
    return request(this.#database.transaction(SENT).objectStore(SENT).getAll());
  }

  /** Removes the record of a decision. */
  async dropSent(requestId: string): Promise<void> {
    const transaction = this.#database.transaction(SENT, "readwrite");
    transaction.objectStore(SENT).delete(requestId);
    await done(transaction);
  }

  /** Deletes everything. */
  async destroy(): Promise<void> {
    this.#database.close();
    await request(this.#factory.deleteDatabase(NAME));
  }
}
