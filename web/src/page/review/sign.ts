// Signs an answer: about exactly the request that is on the screen, and with what was shown of it.

import { askLock, createLock, hasLock, LockError } from "../../keys/lock.ts";
import type { LockCredential } from "../../keys/record.ts";
import {
  type Action,
  type Assertion,
  type Bytes,
  decide,
  type Edit,
  newNonce,
  type OpenedRequest,
  type Outcome,
  type Words,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import type { App } from "../app.ts";
import { keepAsked } from "../asked.ts";
import type { Card } from "../inbox.ts";
import { newRecord } from "../sent.ts";
import { knowsLock } from "../trust.ts";
import type { Offer } from "./offer.ts";
import type { Shown } from "./reading.ts";

/** What a person has chosen. */
export interface Answer {
  readonly outcome: Outcome;
  readonly offer: Offer;
  readonly reason: string;
  readonly action: Action | undefined;
  /** What is changed; only with a rejection. */
  readonly edit?: Edit;
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

/** The lock of this device, made if there is none yet; `undefined` if the device has none that a page can use. */
async function lockOf(app: App): Promise<LockCredential | undefined> {
  const known = app.state.profile?.lock;
  if (known !== undefined || !(await hasLock())) return known;
  try {
    const lock = await createLock(app.approver.identity.id);
    await app.change((profile) => ({ ...profile, lock }));
    return lock;
  } catch (error) {
    if (error instanceof LockError && error.reason === "none") return undefined;
    throw notConfirmed(error);
  }
}

/** Why nothing was signed, if it is for the lock. */
function notConfirmed(error: unknown): unknown {
  if (!(error instanceof LockError)) return error;
  return new NotSignedError(error.reason === "wrong" ? texts.lockWrong : texts.lockCancelled, { cause: error });
}

/** Throws if a request must not be answered now: it has ended or was answered, or its machine is not trusted any more. */
function checkOpen(app: App, { requestId, sentBy }: OpenedRequest): void {
  const { inbox, sent, pins } = app.state;
  const end = inbox.get(requestId)?.end;
  if (end !== undefined) throw new NotSignedError(texts.end[end]);
  if (sent.has(requestId)) throw new NotSignedError(texts.answeredBefore);
  if (!pins.isActive(sentBy.fingerprint, app.approver.http.clock.now())) throw new NotSignedError(texts.notTrustedNow);
}

/** Throws if a machine that wants a verified person could not tell: it would refuse the answer. */
async function checkKnown(app: App, { sentBy }: OpenedRequest): Promise<void> {
  if (knowsLock(app, sentBy.fingerprint)) return;
  const hasOne = app.state.profile?.lock !== undefined || (await hasLock());
  throw new NotSignedError(hasOne ? texts.lockUnknown : texts.lockNeeded);
}

/** Signs and sends an answer about a card. The card is the one that is shown; nothing is looked up again. */
export async function sign(app: App, card: Card, answer: Answer): Promise<void> {
  const { request } = card;
  if (request === undefined) throw new NotSignedError(texts.notShownRule);
  if (answer.outcome === "approve" && answer.shown.unread > 0) throw new NotSignedError(texts.notReadNow);
  checkOpen(app, request);
  const { identity, http } = app.approver;
  const { outcome, offer, action, shown } = answer;
  const isApproval = outcome === "approve";
  if (isApproval && request.needsPerson) await checkKnown(app, request);
  const credential = isApproval && (answer.isSerious || request.needsPerson) ? await lockOf(app) : undefined;
  if (isApproval && request.needsPerson && credential === undefined) throw new NotSignedError(texts.lockNeeded);
  if (isApproval && answer.needsLock === true && credential === undefined)
    throw new NotSignedError(texts.lockCancelled);
  checkOpen(app, request);
  const lock = async (challenge: Bytes): Promise<Assertion | undefined> => {
    if (credential === undefined) return undefined;
    const assertion = await askLock(credential, challenge).catch((error: unknown) =>
      Promise.reject(notConfirmed(error)),
    );
    // The lock takes its time, and the world goes on meanwhile.
    checkOpen(app, request);
    return assertion;
  };
  const words: Words = {
    reason: answer.reason.trim() === "" ? undefined : answer.reason,
    shown: shownText(shown, credential !== undefined),
    action: action?.id,
    pattern: isApproval ? offer.pattern : undefined,
    edit: isApproval ? undefined : answer.edit,
  };
  const now = http.clock.now();
  const scope = isApproval ? offer.scope : "once";
  const validUntil = now.plus(isApproval ? offer.millis : 10 * 60_000);
  const choice = { outcome, scope, validUntil, words, nonce: newNonce(), lock };
  const sent = await decide(request, choice, identity, now);
  if (words.edit !== undefined)
    app.set({ changed: new Map([...app.state.changed, [request.requestId, request.edits]]) });
  await app.answers.send(newRecord(request, card.payload, sent, choice, now, action));
  await keepAsked(app.database, request, words);
}
