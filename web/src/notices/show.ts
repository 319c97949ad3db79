// Shows a notification for every push, whatever happens: a push without one costs the subscription on some systems.

import { isAsked } from "../page/review/question.ts";
import { OpenError, type OpenedRequest, readPayload, sendNoticeReceipt } from "../protocol/index.ts";
import { notices } from "../texts/notices.ts";
import { type Device, openThese, withDevice } from "./device.ts";
import { type Notice, type NoticeData, noticeData, plainNotice, problemNotice, requestNotice } from "./notice.ts";
import { type Push, readPush } from "./push.ts";

/** What says more than the fixed text has to be ready within this time. */
const OPEN_MILLIS = 3_000;
/** So many requests are remembered as shown. */
const MAX_SHOWN = 200;
const SHOWN = "notices-shown";

/** Where notifications are shown. */
export type Site = Pick<ServiceWorkerRegistration, "showNotification" | "getNotifications">;

/** A push has come. */
export async function pushed(text: string | undefined, site: Site): Promise<void> {
  const push = readPush(text);
  const made = await within(
    OPEN_MILLIS,
    withDevice((device) => noticesOf(push, device)),
  ).catch(() => undefined);
  for (const notice of made ?? [plainNotice(dataOf(push))]) await show(site, notice);
  if (push === undefined) return;
  await closeEnded(site, push).catch(() => undefined);
  await displayed(push).catch(() => undefined);
}

/** Shows a notification, and makes the phone say so again if it takes the place of another one. */
export async function show(site: Site, { title, body, tag, data, actions }: Notice): Promise<void> {
  // `renotify` and `actions` are not in the types of every engine.
  const options = { body, tag, data, actions, renotify: true, icon: "/assets/icon-192.png" } as NotificationOptions;
  await site.showNotification(title, options);
}

function dataOf(push: Push | undefined): NoticeData {
  return { kind: push?.kind ?? "request", channel: push?.channel ?? "", requestIds: push?.requestIds ?? [] };
}

async function noticesOf(push: Push | undefined, device: Device): Promise<Notice[] | undefined> {
  const isWanted = device.profile.notices?.showsRequests === true;
  if (push === undefined || push.kind === "test" || !isWanted || push.approverId !== device.profile.id)
    return undefined;
  const approver = await device.approver();
  const opened = await openThese(device, approver, push.requestIds);
  const keyChanged = opened.some((one) => one instanceof OpenError && isChangedKey(one, device));
  if (keyChanged) return [problemNotice(notices.keyChangedNotice, dataOf(push))];
  const readable = opened.filter((one): one is OpenedRequest => !(one instanceof OpenError));
  const shown = new Set(await shownBefore(device));
  const fresh = groups(readable).filter((group) => group.some(({ requestId }) => !shown.has(requestId)));
  // The gateway may send a push twice; something is shown for the second one, too.
  const said = fresh.length > 0 ? fresh : groups(readable).slice(-1);
  if (said.length === 0) return undefined;
  await device.database.update(SHOWN, () => [...new Set([...shown, ...push.requestIds])].slice(-MAX_SHOWN));
  return said.map((group) => noticeOf(group, push.channel));
}

async function shownBefore({ database }: Device): Promise<readonly string[]> {
  const kept = await database.get(SHOWN);
  return Array.isArray(kept) ? (kept as string[]) : [];
}

/** Whether a request comes in the name of a machine that this device trusts, with other keys. */
function isChangedKey({ reason, detail = "" }: OpenError, { pins, access }: Device): boolean {
  return reason === "unknown-sender" && pins.active("enforcer", access.http.clock.now(), detail).length > 0;
}

/** The requests by session, the oldest first; each one's newest is its last. */
function groups(requests: readonly OpenedRequest[]): OpenedRequest[][] {
  const found = new Map<string, OpenedRequest[]>();
  for (const request of requests) {
    const key = request.session ?? request.requestId;
    found.set(key, [...(found.get(key) ?? []), request]);
  }
  return [...found.values()];
}

function noticeOf(group: readonly OpenedRequest[], channel: string): Notice {
  const newest = group.at(-1);
  if (newest === undefined) throw new Error("a session has no request");
  const payload = readPayload(newest.artifactType, newest.payload);
  const requestIds = group.map(({ requestId }) => requestId);
  return requestNotice(newest, payload, { requestIds, channel, isQuestion: isAsked(newest, payload) });
}

/** Closes what is about requests that do not wait any more. A push names the new ones only, so the gateway is asked. */
async function closeEnded(site: Site, push: Push): Promise<void> {
  const isOther = ({ data }: Notification): boolean => {
    const { kind, requestIds = [] } = noticeData(data) ?? {};
    return kind === "request" && requestIds.length > 0 && !requestIds.some((id) => push.requestIds.includes(id));
  };
  const others = (await site.getNotifications()).filter(isOther);
  if (others.length === 0) return;
  const list = await within(
    OPEN_MILLIS,
    withDevice(async (device) => (await device.approver()).list()),
  );
  // What is beyond the pages that are read may wait.
  if (!list.isComplete) return;
  const waiting = new Set(list.envelopes.map(({ requestId }) => requestId));
  for (const notification of others) {
    if (noticeData(notification.data)?.requestIds.some((id) => waiting.has(id)) !== true) notification.close();
  }
}

async function displayed({ approverId, channel, requestIds }: Push): Promise<void> {
  await withDevice(async ({ access }) => {
    if (access.id === approverId) await sendNoticeReceipt(access, { channel, event: "displayed", requestIds });
  });
}

async function within<T>(millis: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("too late")), millis);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
