// Tells the gateway where a push service takes notifications for this device; and remembers what it was told.

import type { NoticeSettings, Profile } from "../keys/record.ts";
import { base64url, type NoticeAccess, putChannel } from "../protocol/index.ts";

/** What the gateway needs of a subscription. */
export type Subscribed = Pick<PushSubscription, "endpoint" | "toJSON" | "options">;

/** The key that a subscription was made with, in base64url; `undefined` where the browser does not say. */
export function keyOf({ options }: Pick<Subscribed, "options">): string | undefined {
  const key = options?.applicationServerKey;
  return key === null || key === undefined ? undefined : base64url.encode(new Uint8Array(key));
}

/** Registers this device's channel, or replaces it. Returns what is remembered of it. */
export async function register(
  access: NoticeAccess,
  subscription: Subscribed,
  { channel, label, page, vapidKey }: { channel: string; label: string; page: string; vapidKey: string },
): Promise<NonNullable<NoticeSettings["registered"]>> {
  const { endpoint } = subscription;
  const { p256dh = "", auth = "" } = subscription.toJSON().keys ?? {};
  await putChannel(access, channel, { label, endpoint, keys: { p256dh, auth }, page });
  return { endpoint, vapidKey, label };
}

/** Changes how this device is notified. */
export function changeNotices(profile: Profile, change: Partial<NoticeSettings>): Profile {
  return { ...profile, notices: { ...profile.notices, ...change } };
}
