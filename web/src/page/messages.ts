// The words of an error.

import { visible } from "../protocol/index.ts";

/** What happened, and what to do next. */
export function messageOf(error: unknown): string {
  if (error instanceof Error && "next" in error && typeof error.next === "string")
    return visible(`${sentence(error.message)} ${error.next}`);
  return visible(error instanceof Error ? sentence(error.message) : String(error));
}

function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
