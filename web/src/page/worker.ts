// Registers the worker that keeps the shell of the page.

interface ScriptUrlPolicy {
  createScriptURL(url: string): string;
}

interface TrustedTypes {
  createPolicy(name: string, rules: ScriptUrlPolicy): ScriptUrlPolicy;
}

const WORKER = "/sw.js";

/** Keeps the shell for the time without a network, where the browser can. */
export function keepOffline(): void {
  if (!("serviceWorker" in navigator)) return;
  const { trustedTypes } = window as { trustedTypes?: TrustedTypes };
  // The only policy of the page: it names one script, and nothing else can be turned into code.
  const policy = trustedTypes?.createPolicy("countersign-worker", { createScriptURL: () => WORKER });
  void navigator.serviceWorker
    .register(policy?.createScriptURL(WORKER) ?? WORKER, { scope: "/" })
    .catch(() => undefined);
}
