// What a push says: who is notified, and of which requests. It has no content of a request.

/** What the gateway sends through a push service. */
export interface Push {
  readonly kind: "request" | "test";
  readonly approverId: string;
  readonly channel: string;
  /** What waits for the person, the newest first. */
  readonly requestIds: readonly string[];
}

/** The gateway names at most so many requests. With fewer, the list is whole. */
const MAX_NAMED = 10;

/** Reads a push; `undefined` if it is none of ours. A notification is shown all the same. */
export function readPush(text: string | undefined): Push | undefined {
  try {
    const whole: unknown = JSON.parse(text ?? "");
    const push = member(whole, "countersign");
    const [kind, approverId, channel] = [member(push, "kind"), member(push, "approverId"), member(push, "channel")];
    const ids = member(push, "requestIds");
    if (typeof approverId !== "string" || typeof channel !== "string" || !Array.isArray(ids)) return undefined;
    const requestIds = ids.filter((id): id is string => typeof id === "string").slice(0, MAX_NAMED);
    return { kind: kind === "test" ? "test" : "request", approverId, channel, requestIds };
  } catch {
    return undefined;
  }
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
