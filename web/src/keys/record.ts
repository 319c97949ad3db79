// What this browser keeps of itself: its keys, its credential, and whom it trusts. The page and its worker read it.

import type { StoredKeys } from "../protocol/index.ts";
import type { Database } from "./database.ts";

/** The key of the profile in the database. */
export const PROFILE = "profile";

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
  /** The machines that were told of this device's lock, by the fingerprints of their keys. */
  readonly lockToldTo?: readonly string[];
  /** Devices that this one has vouched for. */
  readonly vouched?: readonly VouchedDevice[];
  /** Sessions of agents that were seen. */
  readonly sessions?: readonly string[];
  /** Warnings about changed keys that a person has read, and when: RFC 3339. */
  readonly stopsRead?: readonly { readonly change: string; readonly at: string }[];
  readonly notices?: NoticeSettings;
}

/** How this device is notified while the page is closed. */
export interface NoticeSettings {
  /** What the gateway has of this device; absent while it is not notified. */
  readonly registered?: {
    /** The address at the push service. */
    readonly endpoint: string;
    /** The gateway's key that the push service checks, in base64url. */
    readonly vapidKey: string;
    readonly label: string;
  };
  /** Whether a notification says what is asked: this device opens the request for it. */
  readonly showsRequests?: boolean;
  /** Whether the person was asked once. */
  readonly wasOffered?: boolean;
  /** The offset of this device's clock from UTC, as the quiet hours were given or refreshed with it. */
  readonly utcOffsetMinutes?: number;
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

/** The profile as it is kept. */
export async function readProfile(database: Database): Promise<Profile | undefined> {
  return (await database.get(PROFILE)) as Profile | undefined;
}

/** Changes the profile. What `change` throws changes nothing. */
export function changeProfile(database: Database, change: (before: Profile) => Profile): Promise<Profile> {
  return database.update(PROFILE, (before) => {
    if (before === undefined) throw new Error("the profile is gone");
    return change(before as Profile);
  });
}
