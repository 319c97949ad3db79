// Signs an answer: about exactly the request that is on the screen, and with what was shown of it.

import { askLock, createLock, hasLock, LockError, lockChallenge } from "../../keys/lock.ts";
import { type Action, decide, newNonce, type OpenedRequest, type Outcome, type Words } from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import type { App } from "../app.ts";
import type { Card } from "../inbox.ts";
import { newRecord } from "../sent.ts";
import type { Offer } from "./offer.ts";
import type { Shown } from "./reading.ts";

/** What a person has chosen. */
export interface Answer {
  readonly outcome: Outcome;
  readonly offer: Offer;
  readonly reason: string;
  readonly action: Action | undefined;
  readonly shown: Shown;
  /** Whether the lock of the device is asked first. */
  readonly isSerious: boolean;
  /** Whether nothing is signed without that lock: a tap alone is not enough. */
  readonly needsLock?: boolean;
}

/** Nothing was signed; why, in words for a person. */
export class NotSignedError extends Error {
  override readonly name = "NotSignedError";
}

/** What was on the screen, as it is signed. */
export function shownText(shown: Shown, isUnlocked: boolean): string {
  const files = texts.shownFiles(shown.files, shown.ofFiles);
  const lines = texts.shownLines(shown.lines, shown.ofLines);
  const text = texts.shown(files, lines, `${window.innerWidth}×${window.innerHeight}`);
  return isUnlocked ? `${text}, ${texts.shownLock}` : text;
}

/** Asks the lock of this device about this request, content and decision; `false` if there is none. */
async function unlock(app: App, requestId: string, artifactHash: string, nonce: string): Promise<boolean> {
  try {
    let lock = app.state.profile?.lock;
    if (lock === undefined) {
      if (!(await hasLock())) return false;
      const made = await createLock(app.approver.identity.id);
      await app.change((profile) => ({ ...profile, lock: made }));
      lock = made;
    }
    await askLock(lock, await lockChallenge(requestId, artifactHash, nonce));
    return true;
  } catch (error) {
    if (!(error instanceof LockError)) throw error;
    // A lock that was used before is always asked for.
    if (error.reason === "none" && app.state.profile?.lock === undefined) return false;
    throw new NotSignedError(error.reason === "wrong" ? texts.lockWrong : texts.lockCancelled);
  }
}

/** Throws if a request must not be answered now: it has ended or was answered, or its machine is not trusted any more. */
function checkOpen(app: App, { requestId, sentBy }: OpenedRequest): void {
  const { inbox, sent, pins } = app.state;
  const end = inbox.get(requestId)?.end;
  if (end !== undefined) throw new NotSignedError(texts.end[end]);
  if (sent.has(requestId)) throw new NotSignedError(texts.answeredBefore);
  if (!pins.isActive(sentBy.fingerprint, app.approver.http.clock.now())) throw new NotSignedError(texts.notTrustedNow);
}

/** Signs and sends an answer about a card. The card is the one that is shown; nothing is looked up again. */
export async function sign(app: App, card: Card, answer: Answer): Promise<void> {
  const { request } = card;
  if (request === undefined) throw new NotSignedError(texts.notShownRule);
  if (answer.outcome === "approve" && answer.shown.unread > 0) throw new NotSignedError(texts.notReadNow);
  checkOpen(app, request);
  const { identity, http } = app.approver;
  const { outcome, offer, action, shown } = answer;
  const nonce = newNonce();
  const isApproval = outcome === "approve";
  const isUnlocked =
    isApproval && answer.isSerious && (await unlock(app, request.requestId, request.artifactHash, nonce));
  if (isApproval && answer.needsLock === true && !isUnlocked) throw new NotSignedError(texts.lockCancelled);
  // The lock takes its time, and the world goes on meanwhile.
  checkOpen(app, request);
  const words: Words = {
    reason: answer.reason.trim() === "" ? undefined : answer.reason,
    shown: shownText(shown, isUnlocked),
    action: action?.id,
    pattern: isApproval ? offer.pattern : undefined,
  };
  const now = http.clock.now();
  const scope = isApproval ? offer.scope : "once";
  const validUntil = now.plus(isApproval ? offer.millis : 10 * 60_000);
  const choice = { outcome, scope, validUntil, words, nonce };
  const sent = await decide(request, choice, identity, now);
  await app.answers.send(newRecord(request, card.payload, sent, choice, now, action));
}
