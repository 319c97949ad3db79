// A device that is notified: its storage, a machine that asks, a gateway that a test plays, and the notifications on its screen.

import { IDBFactory } from "fake-indexeddb";
import { vi } from "vitest";

import { Database } from "../src/keys/database.ts";
import { keepProfile, prepareKeys } from "../src/keys/profile.ts";
import { changeProfile, type NoticeSettings } from "../src/keys/record.ts";
import type { NoticeData } from "../src/notices/notice.ts";
import type { Site } from "../src/notices/show.ts";
import type { DeviceKeys } from "../src/protocol/device.ts";
import { writeEnvelope } from "../src/protocol/envelope.ts";
import { newPin, Pins } from "../src/protocol/pins.ts";
import { type BuiltRequest, buildRequest, type RequestDraft } from "../src/protocol/request.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { type Device, newDevice, Random } from "./random.ts";

const now = (): Timestamp => Timestamp.ofMillis(Date.now());
const ORIGIN = "https://gw.example";

/** A notification on the screen. */
export interface Shown {
  readonly title: string;
  readonly body: string;
  readonly tag: string;
  readonly data: NoticeData;
  readonly actions: readonly { readonly action: string; readonly title: string }[];
  close(): void;
}

/** What was sent to the gateway. */
interface Sent {
  readonly call: string;
  readonly body: unknown;
}

export class Ringing {
  readonly robot: Device;
  readonly keys: DeviceKeys;
  readonly database: Database;
  readonly factory: IDBFactory;
  /** What is on the screen, the newest last. */
  shown: Shown[] = [];
  readonly sent: Sent[] = [];
  /** The `approval.request` envelopes that wait. */
  inbox: string[] = [];
  /** Another answer of the gateway than usual. */
  answer: ((call: string) => Response | Promise<Response> | undefined) | undefined;
  /** What the gateway says of notifications. */
  notices: object = { vapidPublicKey: "BA", channels: [], quietHours: null };

  private constructor(robot: Device, keys: DeviceKeys, database: Database, factory: IDBFactory) {
    [this.robot, this.keys, this.database, this.factory] = [robot, keys, database, factory];
  }

  static async start(settings: NoticeSettings = {}): Promise<Ringing> {
    const robot = await newDevice(new Random(7), "robot");
    const factory = new IDBFactory();
    const database = await Database.open(factory);
    const keys = await prepareKeys(database);
    const none = { getItem: () => null, setItem: () => undefined, removeItem: () => undefined };
    const joined = { gateway: ORIGIN, tenant: "acme", id: "ada", credential: "csk_x", joinedAt: "" };
    await keepProfile(database, joined, none);
    const pin = newPin({ role: "enforcer", id: "robot" }, robot.keys.bundle, now());
    const pins = new Pins().add(pin).toText();
    await changeProfile(database, (profile) => ({ ...profile, pins, notices: settings }));
    const ringing = new Ringing(robot, keys, database, factory);
    vi.stubGlobal("indexedDB", factory);
    vi.stubGlobal("fetch", (url: string, init: RequestInit) => ringing.#fetch(url, init));
    return ringing;
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    const call = `${init.method} ${url.replace(ORIGIN, "")}`;
    if (init.method !== "GET") this.sent.push({ call, body: JSON.parse(String(init.body ?? "null")) });
    const answer = this.answer?.(call);
    if (answer !== undefined) return answer;
    if (call.startsWith("GET /v1/approvers/ada/inbox")) {
      const body = `{"items":[${this.inbox.join(",")}],"nextCursor":null}`;
      const head = { msgType: "inbox.list", requestId: "list", createdAt: now(), sender: { approverId: "ada" } };
      return new Response(writeEnvelope(head, body));
    }
    return new Response(call.startsWith("GET ") ? JSON.stringify(this.notices) : "{}");
  }

  /** What the gateway was told of this kind. */
  told(call: RegExp): unknown[] {
    return this.sent.filter((sent) => call.test(sent.call)).map(({ body }) => body);
  }

  /** Where the worker shows notifications. */
  get site(): Site {
    return {
      showNotification: async (title, options) => {
        const { tag = "", body = "", data } = options ?? {};
        const { actions = [] } = options as { actions?: Shown["actions"] };
        const one: Shown = { title, body, tag, data, actions, close: () => this.#close(one) };
        this.shown = [...this.shown.filter((other) => other.tag !== tag), one];
      },
      getNotifications: async () => this.shown as unknown as Notification[],
    };
  }

  #close(one: Shown): void {
    this.shown = this.shown.filter((other) => other !== one);
  }

  /** A request that waits. */
  async ask(payload: object = {}, more: Partial<RequestDraft> = {}, machine = this.robot): Promise<BuiltRequest> {
    const command = {
      schema: "org.proto.payload",
      version: 2,
      state: "examined",
      argv: ["ls"],
      cwd: "/",
      effects: [],
      ...payload,
    };
    const draft = {
      artifactType: "command.review" as const,
      payload: JSON.stringify(command),
      repoRef: "r",
      repoName: "acme/shop",
      expiresAt: now().plus(600_000),
      ...more,
    };
    const pins = new Pins().add(newPin({ role: "approver", id: "ada" }, this.keys.bundle, now()));
    const built = await buildRequest(draft, machine, pins, now());
    this.inbox.push(built.envelope.replace('"msgType":"artifact.submit"', '"msgType":"approval.request"'));
    return built;
  }

  /** The text of a push about these requests, as the gateway writes it. */
  push(kind: "request" | "test", ...requests: readonly BuiltRequest[]): string {
    const requestIds = requests.map(({ requestId }) => requestId);
    return JSON.stringify({
      web_push: 8030,
      notification: { title: "Countersign", body: "A request is waiting.", navigate: "/", tag: "countersign" },
      countersign: { version: 1, kind, approverId: "ada", channel: "phone-1", requestIds },
    });
  }
}
