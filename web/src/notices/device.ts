// Who this device is, for the worker: it runs without the page, and finds everything in the database.

import { Database } from "../keys/database.ts";
import { type Profile, readProfile } from "../keys/record.ts";
import {
  Approver,
  type Envelope,
  Http,
  type NoticeAccess,
  type OpenError,
  type OpenedRequest,
  openKeys,
  Pins,
} from "../protocol/index.ts";

/** This device at its gateway. */
export interface Device {
  readonly database: Database;
  readonly profile: Profile;
  readonly pins: Pins;
  /** For calls that need no keys. */
  readonly access: NoticeAccess;
  /** For what needs the device's keys. Throws if they can't be used. */
  approver(): Promise<Approver>;
}

/** Uses this device. Throws if it has not joined. */
export async function withDevice<T>(use: (device: Device) => Promise<T>): Promise<T> {
  const database = await Database.existing();
  try {
    const profile = await readProfile(database);
    if (profile === undefined) throw new Error("this device has not joined");
    const { gateway, credential, id, keys } = profile;
    const http = new Http({ gateway, credential });
    const approver = async (): Promise<Approver> => new Approver(http, id, await openKeys(keys));
    return await use({ database, profile, pins: Pins.parse(profile.pins), access: { http, id }, approver });
  } finally {
    database.close();
  }
}

/** What waits of these requests, fetched sealed and opened here, in the order in which it was asked. */
export async function openThese(
  { pins }: Device,
  approver: Approver,
  requestIds: readonly string[],
): Promise<(OpenedRequest | OpenError)[]> {
  const { envelopes } = await approver.list();
  const isNamed = ({ requestId }: Envelope): boolean => requestIds.includes(requestId);
  return Promise.all(envelopes.filter(isNamed).map(async (envelope) => (await approver.open(envelope, pins)).opened));
}
