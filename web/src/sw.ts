// The worker of the page: it keeps the shell for the time without a network, never an answer of the gateway; and it shows
// notifications while the page is closed.

/// <reference lib="webworker" />

import { withDevice } from "./notices/device.ts";
import { noticeData, placeOf } from "./notices/notice.ts";
import { rejectShown } from "./notices/reject.ts";
import { resubscribe } from "./notices/resubscribe.ts";
import { pushed } from "./notices/show.ts";
import { sendNoticeReceipt } from "./protocol/index.ts";

const CACHE = "countersign-shell-1";
const worker = self as unknown as ServiceWorkerGlobalScope;

worker.addEventListener("install", (event) => {
  event.waitUntil(keepShell().then(() => worker.skipWaiting()));
});

worker.addEventListener("activate", (event) => {
  event.waitUntil(worker.clients.claim());
});

/** Keeps the document and what it names: its script, its style sheet and the icons. */
async function keepShell(): Promise<void> {
  const cache = await caches.open(CACHE);
  const response = await fetch("/", { cache: "no-store" });
  if (!response.ok) throw new Error("there is no shell");
  await cache.put("/", response.clone());
  const named = (await response.text()).matchAll(/(?:src|href)="(\/assets\/[\w.-]+)"/g);
  await cache.addAll([...new Set(Array.from(named, ([, path]) => path ?? "/"))]);
}

worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== worker.location.origin) return;
  // The network first: an update counts at once, and only without a network the kept shell is used.
  if (request.mode === "navigate") {
    if (/^\/(join|pair|connect)?$/.test(url.pathname)) event.respondWith(fresh(request));
  } else if (/^\/assets\/[\w.-]+$/.test(url.pathname)) event.respondWith(asset(request));
});

async function fresh(request: Request): Promise<Response> {
  try {
    const response = await fetch(request);
    if (response.ok && response.headers.get("Content-Type")?.startsWith("text/html") === true) {
      await (await caches.open(CACHE)).put("/", response.clone());
    }
    return response;
  } catch (error) {
    const kept = await caches.match("/");
    if (kept !== undefined) return kept;
    throw error;
  }
}

/** The names of assets have their hash, so one that is kept is the right one. */
async function asset(request: Request): Promise<Response> {
  const kept = await caches.match(request);
  if (kept !== undefined) return kept;
  const response = await fetch(request);
  if (response.ok) await (await caches.open(CACHE)).put(request, response.clone());
  return response;
}

worker.addEventListener("push", (event) => {
  event.waitUntil(pushed(event.data?.text(), worker.registration));
});

worker.addEventListener("pushsubscriptionchange", (event) => {
  (event as ExtendableEvent).waitUntil(resubscribe(worker.registration));
});

worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const data = noticeData(event.notification.data);
  if (event.action === "reject" && data !== undefined) event.waitUntil(rejectShown(data, worker.registration));
  else event.waitUntil(Promise.all([openAt(data === undefined ? "#/" : placeOf(data)), opened(event.notification)]));
});

/** Opens the page at a place, or focuses it there if it is open. */
async function openAt(place: string): Promise<void> {
  const tabs = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const tab = tabs.find(({ focused }) => focused) ?? tabs[0];
  const isShown = await tab?.focus().catch(() => undefined);
  if (tab === undefined || isShown === undefined) await worker.clients.openWindow(`/${place}`);
  else tab.postMessage({ open: place });
}

/** The gateway learns that the person has opened it. */
async function opened({ data }: Notification): Promise<void> {
  const { channel = "", requestIds = [] } = noticeData(data) ?? {};
  if (channel === "") return;
  const receipt = { channel, event: "opened", requestIds } as const;
  await withDevice(({ access }) => sendNoticeReceipt(access, receipt)).catch(() => undefined);
}
