// The storage of the page: IndexedDB, which keeps keys that nobody can read out.

import { CountersignError } from "../protocol/index.ts";

const NAME = "countersign";
const VALUES = "values";
const SENT = "sent";
/** The value that has the ids of the requests of which it is kept what was asked, oldest first. */
const ASKED = "asked";

/** This browser does not keep what the page needs. */
export class StorageError extends CountersignError {
  readonly code = "storage";
  readonly next =
    "Leave private browsing, allow this site to store data, or free some space; then load the page again.";

  constructor(cause: unknown) {
    super("this browser does not store what this page needs", { cause });
  }
}

function askedKey(requestId: string): string {
  return `${ASKED}/${requestId}`;
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

/** Opens the database. `isNew` says whether it may be made. */
async function opened(factory: IDBFactory, isNew: boolean): Promise<IDBDatabase> {
  const opening = factory.open(NAME, 1);
  opening.onupgradeneeded = () => {
    if (!isNew) {
      opening.transaction?.abort();
      return;
    }
    opening.result.createObjectStore(VALUES);
    opening.result.createObjectStore(SENT, { keyPath: "requestId" });
  };
  return request(opening);
}

/** Whether a connection to the database was lost, as iOS does with a page that sleeps. */
function isLost(error: unknown): boolean {
  return error instanceof DOMException && (error.name === "InvalidStateError" || error.name === "UnknownError");
}

type StoreName = typeof VALUES | typeof SENT;

/** An open database. A connection that the browser has closed is opened again. */
export class Database {
  readonly #factory: IDBFactory;
  #database: IDBDatabase;
  #reopening: Promise<void> | undefined;
  /** It is not opened again: somebody has deleted it, here or in another tab, or it is not needed any more. */
  #isOver = false;

  private constructor(database: IDBDatabase, factory: IDBFactory) {
    this.#factory = factory;
    this.#database = this.#watched(database);
  }

  static async open(factory: IDBFactory = indexedDB): Promise<Database> {
    return new Database(await opened(factory, true), factory);
  }

  /** The database that the page has made. Throws {@link StorageError} if there is none. */
  static async existing(factory: IDBFactory = indexedDB): Promise<Database> {
    return new Database(await opened(factory, false), factory);
  }

  /** Ends the connection. */
  close(): void {
    this.#isOver = true;
    this.#database.close();
  }

  #watched(database: IDBDatabase): IDBDatabase {
    // Another tab that forgets this device deletes the database.
    database.onversionchange = () => {
      this.#isOver = true;
      database.close();
    };
    return database;
  }

  /** A value, or `undefined`. */
  async get(key: string): Promise<unknown> {
    return this.#use(VALUES, "readonly", (transaction) => request(transaction.objectStore(VALUES).get(key)));
  }

  /** Replaces a value by what `change` makes of it, in one transaction, so that no other tab comes between. */
  async update<T>(key: string, change: (before: unknown) => T): Promise<T> {
    return this.#change(VALUES, key, change);
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
    return this.#use(SENT, "readonly", (transaction) => request(transaction.objectStore(SENT).getAll()));
  }

  /** Keeps what was asked in a request, and forgets the oldest of more than so many. */
  async keepAsked(requestId: string, asked: unknown, most: number): Promise<void> {
    await this.#use(VALUES, "readwrite", async (transaction) => {
      const [store, end] = [transaction.objectStore(VALUES), done(transaction)];
      const before = ((await request(store.get(ASKED))) as readonly string[] | undefined) ?? [];
      const kept = [...before.filter((id) => id !== requestId), requestId];
      for (const id of kept.splice(0, Math.max(0, kept.length - most))) store.delete(askedKey(id));
      store.put(kept, ASKED);
      store.put(asked, askedKey(requestId));
      await end;
    });
  }

  /** What was asked in a request, or `undefined`. */
  async asked(requestId: string): Promise<unknown> {
    return this.get(askedKey(requestId));
  }

  /** Deletes everything. */
  async destroy(): Promise<void> {
    this.#isOver = true;
    this.#database.close();
    await request(this.#factory.deleteDatabase(NAME));
  }

  async #change<T>(name: StoreName, key: string, change: (before: unknown) => T): Promise<T> {
    return this.#use(name, "readwrite", async (transaction) => {
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
    });
  }

  /** Begins a transaction and uses it; on a new connection if the old one is lost. */
  async #use<T>(
    name: StoreName,
    mode: "readonly" | "readwrite",
    use: (transaction: IDBTransaction) => Promise<T>,
  ): Promise<T> {
    const begin = (): IDBTransaction => this.#database.transaction(name, mode, { durability: "strict" });
    let transaction: IDBTransaction;
    try {
      transaction = begin();
    } catch (error) {
      if (this.#isOver || !isLost(error)) throw error;
      await this.#reopen();
      transaction = begin();
    }
    return use(transaction);
  }

  /** Opens the database again, which must still be there: an empty one in its place would hide that everything is lost. */
  #reopen(): Promise<void> {
    this.#database.close();
    this.#reopening ??= opened(this.#factory, false)
      .then((database) => {
        this.#database = this.#watched(database);
      })
      .finally(() => {
        this.#reopening = undefined;
      });
    return this.#reopening;
  }
}
