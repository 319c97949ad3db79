// The push service of this browser.

import { base64url } from "../protocol/index.ts";
import { isTabOfApple } from "./platform.ts";

/** Whether this browser can be notified while the page is closed. */
export function pushSupport(): "yes" | "homeScreen" | "none" {
  if (isTabOfApple()) return "homeScreen";
  const hasAll = "serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis;
  return hasAll ? "yes" : "none";
}

/** The worker of the page must be there within this time. */
const READY_MILLIS = 10_000;

/** The registration of the worker; `undefined` if there is none. */
export async function workerSite(): Promise<ServiceWorkerRegistration | undefined> {
  if (!("serviceWorker" in navigator)) return undefined;
  const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), READY_MILLIS));
  return Promise.race([navigator.serviceWorker.ready, late]);
}

/** This browser's subscription, if it has one. */
export async function subscription(): Promise<PushSubscription | undefined> {
  return (await (await workerSite())?.pushManager.getSubscription()) ?? undefined;
}

/** Subscribes at the push service, for messages of the gateway with this key. */
export async function subscribe(vapidKey: string): Promise<PushSubscription> {
  const site = await workerSite();
  if (site === undefined) throw new Error("the worker is not there");
  const applicationServerKey = base64url.decode(vapidKey) ?? new Uint8Array();
  return site.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
}
