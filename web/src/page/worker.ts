// The worker of the page: registered, and listened to.

interface ScriptUrlPolicy {
  createScriptURL(url: string): string;
}

interface TrustedTypes {
  createPolicy(name: string, rules: ScriptUrlPolicy): ScriptUrlPolicy;
}

const WORKER = "/sw.js";

/** Keeps the shell for the time without a network, and shows notifications, where the browser can. */
export function keepOffline(): void {
  if (!("serviceWorker" in navigator)) return;
  const { trustedTypes } = window as { trustedTypes?: TrustedTypes };
  // The only policy of the page: it names one script, and nothing else can be turned into code.
  const policy = trustedTypes?.createPolicy("countersign-worker", { createScriptURL: () => WORKER });
  void navigator.serviceWorker
    .register(policy?.createScriptURL(WORKER) ?? WORKER, { scope: "/" })
    .catch(() => undefined);
}

/** A tap on a notification opens its place here, if the page is open. */
export function followTaps(): void {
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
    const isPlace = typeof data === "object" && data !== null && "open" in data && typeof data.open === "string";
    if (isPlace && /^#\/(request\/[^/]+|devices)?$/.test(String(data.open))) location.hash = String(data.open);
  });
}
