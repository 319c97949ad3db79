// What a webhook can send, and what a person enters to have one called.

import type { WebhookDraft } from "../protocol/index.ts";

/** What a webhook can send, as docs/notifications.md has it. */
export const FORMATS = {
  signed: {},
  plain: { template: "{{text}} {{link}}", contentType: "text/plain" },
  slack: { template: '{"text":"{{text}} <{{link}}|Open>"}' },
} as const satisfies Readonly<Record<string, Pick<WebhookDraft, "template" | "contentType">>>;

export type HookFormat = keyof typeof FORMATS;

/** The address that was entered; `undefined` if it is none. */
export function hookAddress(text: string): URL | undefined {
  try {
    const url = new URL(text.trim());
    return /^https?:$/.test(url.protocol) && url.host !== "" ? url : undefined;
  } catch {
    return undefined;
  }
}

/** What the program at an address expects, as far as its name says so. */
export function usualFormat(host: string): HookFormat {
  if (host === "hooks.slack.com") return "slack";
  return /^ntfy\./.test(host) ? "plain" : "signed";
}

/** A name for a new channel, which nobody reads. */
export function newHookId(): string {
  return `webhook-${crypto.randomUUID()}`;
}
