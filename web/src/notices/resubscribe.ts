// The push service has given this device another address: the gateway gets it, without the page.

import { changeProfile } from "../keys/record.ts";
import { base64url, readNotices } from "../protocol/index.ts";
import { withDevice } from "./device.ts";
import { changeNotices, register, type Subscribed } from "./register.ts";

/** Who subscribes at the push service. */
export interface Subscriber {
  readonly scope: string;
  readonly pushManager: { subscribe(options: PushSubscriptionOptionsInit): Promise<Subscribed> };
}

/** Registers the new address. A device whose person has stopped notifications stays silent. */
export async function resubscribe(site: Subscriber): Promise<void> {
  await withDevice(async (device) => {
    const before = device.profile.notices?.registered;
    if (before === undefined) return;
    const { vapidPublicKey: vapidKey } = await readNotices(device.access);
    const subscription = await site.pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: base64url.decode(vapidKey) ?? new Uint8Array(),
    });
    const { identity } = await device.approver();
    const channel = identity.keys.fingerprint;
    const registered = await register(device.access, subscription, {
      channel,
      label: before.label,
      page: site.scope,
      vapidKey,
    });
    await changeProfile(device.database, (profile) => changeNotices(profile, { registered }));
  });
}
