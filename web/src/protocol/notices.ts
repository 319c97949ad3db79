// How a person is notified: the channels that the gateway has, what became of each, and the hours without a sound. All of it is
// the gateway's word.

import { type Http, segment } from "./http.ts";
import type { JsonValue } from "./json.ts";
import { flag, id, list, Members, number, type Read, text, time, word } from "./members.ts";
import type { Timestamp } from "./timestamp.ts";

/** Why a channel fails. */
export const CHANNEL_FAILURES = ["refused", "gone", "unreachable", "timedOut", "busy", "notAllowed"] as const;
/** A reason that is not known here is said as one of no kind. */
export type ChannelFailure = (typeof CHANNEL_FAILURES)[number] | "other";

/** One way to notify a person. */
export interface NoticeChannel {
  readonly id: string;
  readonly kind: "webPush" | "unifiedPush" | "webhook";
  readonly label: string;
  /** Who passes it on. */
  readonly host: string;
  readonly createdAt: Timestamp;
  /** When the push service last took one. */
  readonly acceptedAt: Timestamp | undefined;
  /** When the device last said that it showed one. */
  readonly displayedAt: Timestamp | undefined;
  readonly failing: { readonly since: Timestamp; readonly reason: ChannelFailure } | undefined;
}

/** Hours in which only what is loud makes a sound: wall clock, `HH:MM`. */
export interface QuietHours {
  readonly from: string;
  readonly to: string;
  readonly utcOffsetMinutes: number;
}

/** How a person is notified. */
export interface Notices {
  /** The key by which a push service knows this gateway, in base64url. */
  readonly vapidPublicKey: string;
  readonly channels: readonly NoticeChannel[];
  readonly quietHours: QuietHours | undefined;
  /** Whether a visible test is sent every week; `undefined` at a gateway that sends none. */
  readonly weeklyTest: boolean | undefined;
}

/** A browser that wants to be notified. */
export interface PushDraft {
  readonly label: string;
  readonly endpoint: string;
  readonly keys: { readonly p256dh: string; readonly auth: string };
  /** Where the page is. */
  readonly page: string;
}

/** An address of the person's own that is called. */
export interface WebhookDraft {
  readonly label: string;
  readonly endpoint: string;
  /** Where the page is. */
  readonly page: string;
  /** What is sent, with `{{text}}` and `{{link}}` in it; absent for the standard message. */
  readonly template?: string;
  readonly contentType?: string;
}

/** What became of a test. */
export type TestResult =
  | { readonly isAccepted: true }
  | { readonly isAccepted: false; readonly reason: ChannelFailure };

/** A person at a gateway. */
export interface NoticeAccess {
  readonly http: Http;
  readonly id: string;
}

const failure: Read<ChannelFailure> = (value, at) =>
  CHANNEL_FAILURES.find((known) => known === text(value, at)) ?? "other";

const orNull =
  <T>(read: Read<T>): Read<T | undefined> =>
  (value, at) =>
    value === null ? undefined : read(value, at);

function readChannel(value: JsonValue, at: string): NoticeChannel {
  const members = new Members(value, at);
  return {
    id: members.required("id", id),
    kind: members.required("kind", word(["webPush", "unifiedPush", "webhook"])),
    label: members.optional("label", text) ?? "",
    host: members.optional("host", text) ?? "",
    createdAt: members.required("createdAt", time),
    acceptedAt: members.optional("acceptedAt", orNull(time)),
    displayedAt: members.optional("displayedAt", orNull(time)),
    failing: members.optional("failing", orNull(readFailing)),
  };
}

function readFailing(value: JsonValue, at: string) {
  const members = new Members(value, at);
  return { since: members.required("since", time), reason: members.required("reason", failure) };
}

function readQuietHours(value: JsonValue, at: string): QuietHours {
  const members = new Members(value, at);
  return {
    from: members.required("from", text),
    to: members.required("to", text),
    utcOffsetMinutes: members.required("utcOffsetMinutes", number),
  };
}

const base = (person: string): string => `/platform/v1/approvers/${segment(person)}/notifications`;

function send({ http, id: person }: NoticeAccess, method: "PUT" | "POST" | "DELETE", path: string, body?: object) {
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  return http.sendUntil({ method, path: `${base(person)}${path}`, ...content }, 10_000);
}

/** How the person is notified now. */
export async function readNotices({ http, id: person }: NoticeAccess): Promise<Notices> {
  const answer = await http.sendUntil({ method: "GET", path: base(person) }, 10_000);
  return answer.read((members) => ({
    vapidPublicKey: members.required("vapidPublicKey", text),
    channels: members.required("channels", list(readChannel)),
    quietHours: members.optional("quietHours", orNull(readQuietHours)),
    weeklyTest: members.optional("weeklyTest", flag),
  }));
}

/** Has this browser notified. A channel of the same name is replaced. */
export async function putChannel(access: NoticeAccess, channel: string, draft: PushDraft): Promise<void> {
  await send(access, "PUT", `/channels/${segment(channel)}`, { kind: "webPush", ...draft });
}

/** Has an address called. A channel of the same name is replaced. Returns the new secret of its signatures. */
export async function putWebhook(access: NoticeAccess, channel: string, draft: WebhookDraft): Promise<string> {
  const answer = await send(access, "PUT", `/channels/${segment(channel)}`, { kind: "webhook", ...draft });
  return answer.read((members) => members.required("secret", text));
}

/** Ends a channel, if there is one of this name. */
export async function deleteChannel(access: NoticeAccess, channel: string): Promise<void> {
  await send(access, "DELETE", `/channels/${segment(channel)}`);
}

/** Sends a visible test to a channel, now. */
export async function testChannel({ http, id: person }: NoticeAccess, channel: string): Promise<TestResult> {
  const path = `${base(person)}/channels/${segment(channel)}/test`;
  const answer = await http.send({ method: "POST", path });
  return answer.read((members): TestResult => {
    if (members.required("accepted", flag)) return { isAccepted: true };
    return { isAccepted: false, reason: members.optional("reason", failure) ?? "other" };
  });
}

/** Sets the quiet hours, or ends them. */
export async function putQuietHours(access: NoticeAccess, hours: QuietHours | undefined): Promise<void> {
  await send(access, hours === undefined ? "DELETE" : "PUT", "/quiet-hours", hours);
}

/** Has a visible test sent every week, or no longer. */
export async function putWeeklyTest(access: NoticeAccess, isWanted: boolean): Promise<void> {
  await send(access, isWanted ? "PUT" : "DELETE", "/weekly-test", isWanted ? {} : undefined);
}

/** Says that this device has shown a notification, or that its person has opened it. */
export async function sendNoticeReceipt(
  access: NoticeAccess,
  receipt: {
    readonly channel: string;
    readonly event: "displayed" | "opened";
    readonly requestIds: readonly string[];
  },
): Promise<void> {
  await send(access, "POST", "/receipts", receipt);
}
