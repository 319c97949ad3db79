// Whether this page may call a gateway on another origin: the gateway has to list it, and the policy of the page to allow it.

import { CountersignError } from "../protocol/index.ts";
import { texts } from "../texts.ts";

/** The gateway must answer within this time. */
const PROBE_MILLIS = 10_000;

/** This page may not call the gateway. */
export class ReachError extends CountersignError {
  readonly code = "reach";
  readonly next: string;

  constructor(message: string, next: string) {
    super(message);
    this.next = next;
  }
}

/** Throws {@link ReachError} if this page is on another origin than the gateway and can't call it. Sends no credential. */
export async function checkReach(gateway: string): Promise<void> {
  if (new URL(gateway).origin === location.origin) return;
  const isForbiddenHere = watchPolicy();
  const call = (mode: RequestMode): Promise<boolean> =>
    fetch(`${gateway}/readyz`, {
      mode,
      credentials: "omit",
      cache: "no-store",
      signal: AbortSignal.timeout(PROBE_MILLIS),
    }).then(
      () => true,
      () => false,
    );
  if (await call("cors")) return;
  // Without leave the answer can't be read, and whether there was one can be seen all the same.
  const isThere = await call("no-cors");
  const { origin } = location;
  if (await isForbiddenHere()) throw new ReachError(texts.reachPolicy, texts.reachPolicyNext(gateway));
  if (isThere) throw new ReachError(texts.reachOrigin(origin), texts.reachOriginNext(origin));
  throw new ReachError(texts.reachNobody(gateway), texts.reachNobodyNext);
}

/** Whether the Content-Security-Policy of this page has forbidden a connection from now on. */
function watchPolicy(): () => Promise<boolean> {
  let isForbidden = false;
  const hear = ({ effectiveDirective }: SecurityPolicyViolationEvent): void => {
    if (effectiveDirective === "connect-src") isForbidden = true;
  };
  document.addEventListener("securitypolicyviolation", hear);
  return async () => {
    // The event comes after the call has failed.
    await new Promise((resolve) => setTimeout(resolve, 50));
    document.removeEventListener("securitypolicyviolation", hear);
    return isForbidden;
  };
}
