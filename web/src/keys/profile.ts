// Who this browser is: its keys, its credential, and whom it trusts.

import { type DeviceKeys, generateKeys, openKeys, Pins, type StoredKeys } from "../protocol/index.ts";
import type { Database } from "./database.ts";

/** What this browser keeps of itself. The private halves of the keys can't be read, also not by this page. */
export interface Profile {
  readonly version: 1;
  readonly gateway: string;
  /** The API key. */
  readonly credential: string;
  readonly tenant: string;
  /** Whose device this is. */
  readonly id: string;
  readonly keys: StoredKeys;
  /** Whom a person has confirmed, as `Pins.toText` writes it. */
  readonly pins: string;
  /** What machines call themselves: for people, and no proof. */
  readonly labels: Readonly<Record<string, string>>;
  readonly joinedAt: string;
  /** What this device is called, as its person named it. */
  readonly device?: string;
  /** The public keys of the recovery code, if one was made. */
  readonly recovery?: string;
  /** The credential by which the lock of this device confirms who holds it. */
  readonly lock?: LockCredential;
  /** Devices that this one has vouched for. */
  readonly vouched?: readonly VouchedDevice[];
  /** Sessions of agents that were seen. */
  readonly sessions?: readonly string[];
  /** Warnings about changed keys that a person has read, and when: RFC 3339. */
  readonly stopsRead?: readonly { readonly change: string; readonly at: string }[];
}

/** A credential of the device's own lock (WebAuthn). */
export interface LockCredential {
  readonly id: Uint8Array<ArrayBuffer>;
  /** The public key in SubjectPublicKeyInfo, and its COSE algorithm. */
  readonly publicKey: ArrayBuffer;
  readonly algorithm: number;
}

/** A device that this one has vouched for. */
export interface VouchedDevice {
  readonly approverId: string;
  readonly fingerprint: string;
  readonly short: string;
  /** What its owner calls it, such as "Ada's laptop". */
  readonly label?: string;
  /** Its public keys, by which its answers are checked. */
  readonly keys?: string;
  readonly until: string;
  readonly revokedAt?: string;
}

const PROFILE = "profile";
const PENDING = "pending-keys";
/** Outside of the database: it is how a browser that has lost the database knows that it had one. */
const MARKER = "countersign.joined";

/** What was found at the start. */
export type Found =
  | { readonly kind: "none" }
  /** There was a profile in this browser, and its keys are gone or can't be used. */
  | { readonly kind: "lost"; readonly id: string; readonly gateway: string }
  | { readonly kind: "profile"; readonly profile: Profile; readonly keys: DeviceKeys };

/** The profile as it is kept. */
export async function readProfile(database: Database): Promise<Profile | undefined> {
  return (await database.get(PROFILE)) as Profile | undefined;
}

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

/** Changes the profile. What `change` throws changes nothing. */
export function changeProfile(database: Database, change: (before: Profile) => Profile): Promise<Profile> {
  return database.update(PROFILE, (before) => {
    if (before === undefined) throw new Error("the profile is gone");
    return change(before as Profile);
  });
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
