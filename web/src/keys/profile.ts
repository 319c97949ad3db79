// How this browser gets its profile, finds it again, and forgets it.

import { type DeviceKeys, generateKeys, openKeys, Pins, type StoredKeys } from "../protocol/index.ts";
import type { Database } from "./database.ts";
import { PROFILE, type Profile, readProfile } from "./record.ts";

const PENDING = "pending-keys";
/** Outside of the database: it is how a browser that has lost the database knows that it had one. */
const MARKER = "countersign.joined";

/** What was found at the start. */
export type Found =
  | { readonly kind: "none" }
  /** There was a profile in this browser, and its keys are gone or can't be used. */
  | { readonly kind: "lost"; readonly id: string; readonly gateway: string }
  | { readonly kind: "profile"; readonly profile: Profile; readonly keys: DeviceKeys };

/** Looks for the profile of this browser, and whether its keys still work. */
export async function findProfile(database: Database, texts: Texts = localStorage): Promise<Found> {
  const profile = await readProfile(database);
  const marker = readMarker(texts);
  if (profile === undefined)
    return marker === undefined ? { kind: "none" } : { kind: "lost", id: marker.id, gateway: marker.gateway };
  try {
    const keys = await openKeys(profile.keys);
    // Keys in place of others are no keys of this device.
    if (marker === undefined || marker.fingerprint === keys.fingerprint) return { kind: "profile", profile, keys };
  } catch {
    // It is said below.
  }
  return { kind: "lost", id: profile.id, gateway: profile.gateway };
}

/** Where the marker is kept. */
export type Texts = Pick<Storage, "getItem" | "setItem" | "removeItem">;

function readMarker(texts: Texts): { id: string; gateway: string; fingerprint: string } | undefined {
  try {
    const marker: unknown = JSON.parse(texts.getItem(MARKER) ?? "null");
    if (
      typeof marker !== "object" ||
      marker === null ||
      !("id" in marker && "gateway" in marker && "fingerprint" in marker)
    )
      return undefined;
    return { id: String(marker.id), gateway: String(marker.gateway), fingerprint: String(marker.fingerprint) };
  } catch {
    return undefined;
  }
}

/**
 * Keys for a device that is about to join, kept before the invitation is used: one that is used up by a browser which can't
 * keep keys would be lost.
 */
export async function prepareKeys(database: Database): Promise<DeviceKeys> {
  const made = await generateKeys();
  await openKeys(made);
  await database.update(PENDING, () => made);
  const kept = (await database.get(PENDING)) as StoredKeys;
  return openKeys(kept);
}

/** Makes the keys that were prepared those of this browser's profile. */
export async function keepProfile(
  database: Database,
  joined: Omit<Profile, "version" | "keys" | "pins" | "labels">,
  texts: Texts = localStorage,
): Promise<Profile> {
  const keys = (await database.get(PENDING)) as StoredKeys;
  const profile = await database.update(
    PROFILE,
    (): Profile => ({ version: 1, ...joined, keys, pins: new Pins().toText(), labels: {} }),
  );
  await database.update(PENDING, () => null);
  try {
    const { fingerprint } = await openKeys(keys);
    texts.setItem(MARKER, JSON.stringify({ id: profile.id, gateway: profile.gateway, fingerprint }));
  } catch {
    // The marker only helps to explain a loss.
  }
  return profile;
}

/** Removes everything that this browser keeps. */
export async function forget(database: Database, texts: Texts = localStorage): Promise<void> {
  try {
    texts.removeItem(MARKER);
  } catch {
    // It was never there then.
  }
  await database.destroy();
}

/** Asks the browser not to clear the storage by itself; whether it promised that. */
export async function keepStorage(): Promise<boolean> {
  try {
    return await navigator.storage.persist();
  } catch {
    return false;
  }
}
