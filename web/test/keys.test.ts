// The store of keys: what is kept, and what is said when it is lost.

import { IDBFactory } from "fake-indexeddb";
import { beforeEach, describe, expect, test } from "vitest";

import { KeyStore, persist, type TextStorage } from "../src/keys/store.ts";
import { generateKeys } from "../src/protocol/device.ts";
import { verifyStrict } from "../src/protocol/ed25519.ts";
import { newPin, PinError } from "../src/protocol/pins.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { newDevice, Random } from "./random.ts";

const PROFILE = { gateway: "https://gw.example", tenant: "acme", approverId: "ada", credential: "csk_x" };
const NOW = Timestamp.ofMillis(0);

class Texts implements TextStorage {
  readonly texts = new Map<string, string>();
  getItem = (name: string): string | null => this.texts.get(name) ?? null;
  setItem = (name: string, value: string): void => void this.texts.set(name, value);
  removeItem = (name: string): void => void this.texts.delete(name);
}

describe("the store of keys", () => {
  let [factory, texts] = [new IDBFactory(), new Texts()];
  const store = (): KeyStore => new KeyStore(factory, texts);
  beforeEach(() => {
    [factory, texts] = [new IDBFactory(), new Texts()];
  });

  test("gives back keys that work and can't be exported", async () => {
    expect(await store().load()).toEqual({ state: "new" });
    const created = await store().create(PROFILE, await generateKeys());
    const loaded = await store().load();
    if (loaded.state !== "ready") throw new Error(loaded.state);
    expect(loaded.profile).toEqual(PROFILE);
    expect(loaded.keys.fingerprint).toBe(created.fingerprint);
    const message = new Uint8Array(9);
    expect(verifyStrict(created.bundle.signing, message, await loaded.keys.signer.sign(message))).toBe(true);
    expect(loaded.keys.agreement.privateKey.extractable).toBe(false);
    expect(JSON.stringify([...texts.texts])).not.toContain("csk_x");
  });

  test("says so when the keys are lost, changed or damaged", async () => {
    const created = await store().create(PROFILE, await generateKeys());
    const trace = { gateway: PROFILE.gateway, approverId: "ada", fingerprint: created.fingerprint };
    factory = new IDBFactory();
    expect(await store().load()).toMatchObject({ state: "lost", trace });
    await new KeyStore(factory, new Texts()).create(PROFILE, await generateKeys());
    expect(await store().load()).toMatchObject({ state: "lost", trace, cause: { message: "these are other keys" } });
    const [one, two] = [await generateKeys(), await generateKeys()];
    const mixed = {
      signing: { privateKey: one.signing.privateKey, publicKey: two.signing.publicKey },
      agreement: one.agreement,
    };
    await expect(store().create(PROFILE, mixed)).rejects.toMatchObject({ code: "unsupported-keys" });
    await store().forget();
    expect(await store().load()).toEqual({ state: "new" });
  });

  test("keeps the pins of two tabs, and none of a change that fails", async () => {
    await store().create(PROFILE, await generateKeys());
    const random = new Random(1);
    const pins = await Promise.all(
      Array.from({ length: 8 }, async (_, number) =>
        newPin({ role: "enforcer", id: `robot${number}` }, (await newDevice(random)).keys.bundle, NOW),
      ),
    );
    await Promise.all(pins.map((pin) => store().changePins((all) => all.add(pin))));
    const changed = pins[0] && { ...pins[0], party: { role: "enforcer", id: "evil" } as const };
    await expect(store().changePins((all) => (changed === undefined ? all : all.add(changed)))).rejects.toBeInstanceOf(
      PinError,
    );
    const loaded = await store().load();
    expect(loaded.state === "ready" && loaded.pins.all.map((pin) => pin.party.id).sort()).toEqual(
      pins.map((pin) => pin.party.id),
    );
    await store().forget();
    await expect(store().changePins((all) => all)).rejects.toMatchObject({ code: "storage" });
  });

  test("asks the browser to keep it", async () => {
    expect(await persist(undefined)).toBe(false);
    expect(await persist({ persisted: async () => false, persist: async () => true })).toBe(true);
    expect(await persist({ persisted: async () => true, persist: async () => false })).toBe(true);
  });
});
