// Rejects a request from its notification, signed with the key of this device. Nothing else can be answered from there.

import { keepAsked } from "../page/asked.ts";
import { keepRecord, newRecord, type SentRecord, submit } from "../page/sent.ts";
import { type Approver, decide, newNonce, OpenError, type OpenedRequest, readPayload } from "../protocol/index.ts";
import { notices } from "../texts/notices.ts";
import { type Device, openThese, withDevice } from "./device.ts";
import { type NoticeData, problemNotice } from "./notice.ts";
import { type Site, show } from "./show.ts";

/** The machine may act on it for this time; it does nothing for longer. */
const VALID_MILLIS = 10 * 60_000;

/** Rejects what a notification has shown. What goes wrong is said in another notification. */
export async function rejectShown(data: NoticeData, site: Site): Promise<void> {
  const problem = await withDevice((device) => reject(device, data)).catch(() => notices.rejectFailed);
  if (problem !== undefined) await show(site, problemNotice(problem, { ...data, kind: "problem" }));
}

/** What went wrong, in words. */
async function reject(device: Device, data: NoticeData): Promise<string | undefined> {
  const approver = await device.approver();
  const request = await find(device, approver, data);
  if (typeof request === "string") return request;
  const now = approver.http.clock.now();
  const choice = {
    outcome: "reject",
    scope: "once",
    validUntil: now.plus(VALID_MILLIS),
    words: { shown: notices.shownInNotice },
    nonce: newNonce(),
  } as const;
  const sent = await decide(request, choice, approver.identity, now);
  const payload = readPayload(request.artifactType, request.payload);
  // What is kept before it is sent can be sent again by the page.
  await keepRecord(device.database, newRecord(request, payload, sent, choice, now));
  const record = await submit(approver, newRecord(request, payload, sent, choice, now));
  await keepRecord(device.database, record);
  await keepAsked(device.database, request, choice.words);
  tellTabs();
  return wordsFor(record);
}

/** The request that the notification has shown, or what became of it. Only what was shown is signed. */
async function find(device: Device, approver: Approver, { shown }: NoticeData): Promise<OpenedRequest | string> {
  if (shown === undefined) return notices.rejectFailed;
  const { requestId, artifactHash } = shown;
  const [request] = await openThese(device, approver, [requestId]);
  if (request === undefined) {
    const { state } = await approver.status(requestId);
    if (state === "decided" || state === "delivered") return notices.rejectEnded.answered;
    return state === "pendingApproval" ? notices.rejectFailed : notices.rejectEnded[state];
  }
  const isShown = !(request instanceof OpenError) && request.artifactHash === artifactHash;
  return isShown ? request : notices.rejectFailed;
}

function wordsFor({ failed }: SentRecord): string | undefined {
  if (failed === undefined) return undefined;
  return failed.kind === "refused" || failed.kind === "unreachable"
    ? notices.rejectFailed
    : notices.rejectEnded[failed.kind];
}

/** Open tabs read again what is kept. */
function tellTabs(): void {
  const tabs = new BroadcastChannel("countersign");
  tabs.postMessage("changed");
  tabs.close();
}
