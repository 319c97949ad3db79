// What a notification says, and what it is about.

import {
  isDangerousPayload,
  type OpenedRequest,
  oneLine,
  type Payload,
  sentenceOf,
  visible,
  whoAsks,
} from "../protocol/index.ts";
import { notices } from "../texts/notices.ts";

/** What a notification is about. It is kept with it, so that a tap finds it. */
export interface NoticeData {
  readonly kind: "request" | "test" | "problem";
  readonly channel: string;
  /** All requests that it stands for. */
  readonly requestIds: readonly string[];
  /** The one that it shows: its id, and the hash of exactly what was shown. */
  readonly shown?: { readonly requestId: string; readonly artifactHash: string };
}

/** A button of a notification. */
export interface NoticeAction {
  readonly action: "open" | "reject";
  readonly title: string;
}

/** A notification. */
export interface Notice {
  readonly title: string;
  readonly body: string;
  /** A newer one with the same tag takes its place. */
  readonly tag: string;
  readonly data: NoticeData;
  readonly actions: readonly NoticeAction[];
}

const OPEN: NoticeAction = { action: "open", title: notices.open };
const ALL = "countersign";

/** The one fixed text. There is one of these at a time. */
export function plainNotice(data: NoticeData): Notice {
  const isTest = data.kind === "test";
  const body = isTest ? notices.testNotice : notices.waitingNotice;
  return { title: notices.name, body, tag: isTest ? `${ALL}-test` : ALL, data, actions: [OPEN] };
}

/** Something else that the person must know, in fixed words. */
export function problemNotice(body: string, data: NoticeData): Notice {
  const tag = data.shown === undefined ? `${ALL}-problem` : `${ALL}-problem:${data.shown.requestId}`;
  return { title: notices.name, body, tag, data, actions: [OPEN] };
}

/** Who asks, and what happens: from what this device has opened and checked. */
export function wordsOf(request: OpenedRequest, payload: Payload): { readonly title: string; readonly body: string } {
  const who = whoAsks(payload);
  const project = who.project ?? request.repoName?.split("/").at(-1);
  const place = project === undefined ? visible(request.enforcerId) : oneLine(project);
  const agent = who.agent === undefined ? notices.name : oneLine(who.agent);
  return {
    title: `${isDangerousPayload(payload) ? notices.dangerous : agent} · ${place}`,
    body: sentenceOf(payload),
  };
}

/** A notification that says what is asked. There is one for each session, about its newest request. */
export function requestNotice(
  request: OpenedRequest,
  payload: Payload,
  { requestIds, channel, isQuestion }: { requestIds: readonly string[]; channel: string; isQuestion: boolean },
): Notice {
  const { requestId, artifactHash, session } = request;
  return {
    ...wordsOf(request, payload),
    tag: `${ALL}:${session ?? requestId}`,
    data: { kind: "request", channel, requestIds, shown: { requestId, artifactHash } },
    // Rejecting is always safe. Approving needs the page.
    actions: [OPEN, { action: "reject", title: isQuestion ? notices.dontAnswer : notices.reject }],
  };
}

/** What a notification that is on the screen is about; `undefined` if it is not one of these. */
export function noticeData(data: unknown): NoticeData | undefined {
  if (typeof data !== "object" || data === null || !("requestIds" in data) || !Array.isArray(data.requestIds))
    return undefined;
  return data as NoticeData;
}

/** The fragment of the place that a tap opens: the request if there is one, else the inbox. */
export function placeOf({ kind, requestIds, shown }: NoticeData): string {
  if (kind === "test") return "#/devices";
  const only = requestIds.length === 1 ? requestIds[0] : undefined;
  const id = shown?.requestId ?? only;
  return id === undefined ? "#/" : `#/request/${encodeURIComponent(id)}`;
}
