// What the page keeps, and what is said when it is lost.

import { IDBFactory } from "fake-indexeddb";
import { beforeEach, describe, expect, test } from "vitest";

import { Database, StorageError } from "../src/keys/database.ts";
import { findProfile, forget, keepProfile, prepareKeys, type Texts } from "../src/keys/profile.ts";
import { changeProfile } from "../src/keys/record.ts";
import { generateKeys } from "../src/protocol/device.ts";
import { verifyStrict } from "../src/protocol/ed25519.ts";
import { newPin, PinError, Pins } from "../src/protocol/pins.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { newDevice, Random } from "./random.ts";

const JOINED = {
  gateway: "https://gw.example",
  tenant: "acme",
  id: "ada",
  credential: "csk_x",
  joinedAt: "2026-11-16T00:00:00Z",
};
const NOW = Timestamp.ofMillis(0);

class Kept implements Texts {
  readonly texts = new Map<string, string>();
  getItem = (name: string): string | null => this.texts.get(name) ?? null;
  setItem = (name: string, value: string): void => void this.texts.set(name, value);
  removeItem = (name: string): void => void this.texts.delete(name);
}

describe("a connection to the database", () => {
  /** A factory with the connections that it has opened. */
  function watched() {
    const [factory, connections] = [new IDBFactory(), [] as IDBDatabase[]];
    const open = factory.open.bind(factory);
    factory.open = (...args) => {
      const opening = open(...args);
      opening.addEventListener("success", () => connections.push(opening.result));
      return opening;
    };
    return { factory, connections };
  }

  test("that the browser has closed is opened again, once for all who need it", async () => {
    const { factory, connections } = watched();
    const database = await Database.open(factory);
    await database.update("a", () => 1);
    connections[0]?.close();
    const seen = await Promise.all([database.get("a"), database.update("b", () => 2), database.allSent()]);
    expect([seen, connections.length]).toEqual([[1, 2, []], 2]);
    // The new connection is given up when another tab forgets this device.
    await (await Database.open(factory)).destroy();
    await expect(database.get("a")).rejects.toThrow();
    expect(await factory.databases()).toEqual([]);
  });

  test("keeps what was asked in so many requests, and forgets the oldest", async () => {
    const database = await Database.open(new IDBFactory());
    for (const id of ["a", "b", "a", "c", "d"]) await database.keepAsked(id, `asked in ${id}`, 3);
    const kept = await Promise.all(["a", "b", "c", "d"].map((id) => database.asked(id)));
    expect(kept).toEqual(["asked in a", undefined, "asked in c", "asked in d"]);
    await database.keepAsked("e", "asked in e", 3);
    expect([await database.asked("a"), await database.get("asked")]).toEqual([undefined, ["c", "d", "e"]]);
  });

  test("is not opened again when this tab or another one has deleted the database, or the browser has", async () => {
    const { factory, connections } = watched();
    const [one, two] = [await Database.open(factory), await Database.open(factory)];
    await one.destroy();
    await expect(one.get("a")).rejects.toThrow();
    await expect(two.get("a")).rejects.toThrow();
    expect(await factory.databases()).toEqual([]);
    // Whoever joins again in another tab is somebody else.
    const three = await Database.open(factory);
    await expect(two.get("a")).rejects.toThrow();
    connections.at(-1)?.close();
    await new Promise((resolve) => (factory.deleteDatabase("countersign").onsuccess = resolve));
    await expect(three.update("a", () => 1)).rejects.toBeInstanceOf(StorageError);
    expect(await factory.databases()).toEqual([]);
  });
});

describe("the profile of a browser", () => {
  let [factory, texts] = [new IDBFactory(), new Kept()];
  beforeEach(() => {
    [factory, texts] = [new IDBFactory(), new Kept()];
  });

  async function joined(): Promise<Database> {
    const database = await Database.open(factory);
    await prepareKeys(database);
    await keepProfile(database, JOINED, texts);
    return database;
  }

  test("gives back keys that work and can't be exported", async () => {
    const database = await Database.open(factory);
    expect(await findProfile(database, texts)).toEqual({ kind: "none" });
    const prepared = await prepareKeys(database);
    expect(await findProfile(database, texts)).toEqual({ kind: "none" });
    await keepProfile(database, JOINED, texts);
    const found = await findProfile(await Database.open(factory), texts);
    if (found.kind !== "profile") throw new Error(found.kind);
    expect(found.profile).toMatchObject(JOINED);
    expect(found.keys.fingerprint).toBe(prepared.fingerprint);
    const message = new Uint8Array(9);
    expect(verifyStrict(prepared.bundle.signing, message, await found.keys.signer.sign(message))).toBe(true);
    expect([found.keys.agreement.privateKey.extractable, found.profile.keys.signing.privateKey.extractable]).toEqual([
      false,
      false,
    ]);
    expect(JSON.stringify([...texts.texts])).not.toContain("csk_x");
  });

  test("says so when the keys are lost, changed or damaged", async () => {
    await joined();
    const lost = { kind: "lost", id: "ada", gateway: JOINED.gateway };
    const cleared = await Database.open(new IDBFactory());
    expect(await findProfile(cleared, texts)).toEqual(lost);
    await prepareKeys(cleared);
    await keepProfile(cleared, JOINED, new Kept());
    expect(await findProfile(cleared, texts)).toEqual(lost);
    const database = await Database.open(factory);
    const [one, two] = [await generateKeys(), await generateKeys()];
    const signing = { privateKey: one.signing.privateKey, publicKey: two.signing.publicKey };
    await changeProfile(database, (profile) => ({ ...profile, keys: { signing, agreement: one.agreement } }));
    expect(await findProfile(database, new Kept())).toEqual(lost);
    await forget(database, texts);
    expect(await findProfile(await Database.open(factory), texts)).toEqual({ kind: "none" });
  });

  test("keeps the changes of two tabs, and none of a change that fails", async () => {
    await joined();
    const random = new Random(1);
    const pins = await Promise.all(
      Array.from({ length: 8 }, async (_, number) =>
        newPin({ role: "enforcer", id: `robot${number}` }, (await newDevice(random)).keys.bundle, NOW),
      ),
    );
    const add = async (pin: (typeof pins)[number]) =>
      changeProfile(await Database.open(factory), (profile) => ({
        ...profile,
        pins: Pins.parse(profile.pins).add(pin).toText(),
      }));
    await Promise.all(pins.map(add));
    const [first] = pins;
    if (first === undefined) throw new Error("there are pins");
    await expect(add({ ...first, party: { role: "enforcer", id: "evil" } })).rejects.toBeInstanceOf(PinError);
    const found = await findProfile(await Database.open(factory), texts);
    expect(
      found.kind === "profile" &&
        Pins.parse(found.profile.pins)
          .all.map((pin) => pin.party.id)
          .sort(),
    ).toEqual(pins.map((pin) => pin.party.id));
  });
});
