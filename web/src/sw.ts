// Keeps the shell of the page for the time without a network. It never keeps an answer of the gateway.

/// <reference lib="webworker" />

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
