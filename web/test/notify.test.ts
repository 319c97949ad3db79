// Whether this device is notified: asked for, compared at every start, repaired, and ended. The push service is a fake one.

import { readFileSync } from "node:fs";

import { afterEach, describe, expect, test, vi } from "vitest";

import { type NoticeSettings, readProfile } from "../src/keys/record.ts";
import { Notices, utcOffset } from "../src/page/notices.ts";
import { Store } from "../src/page/store.ts";
import { FORMATS, hookAddress, usualFormat } from "../src/page/webhook.ts";
import { Approver } from "../src/protocol/approver.ts";
import * as base64url from "../src/protocol/base64url.ts";
import { Http } from "../src/protocol/http.ts";
import { texts } from "../src/texts.ts";
import { Ringing } from "./ringing.ts";

const KEY = base64url.encode(Uint8Array.of(4, 1));
const OLD_KEY = base64url.encode(Uint8Array.of(4, 2));
const PHONE = "Mozilla/5.0 (Linux; Android 15) Mobile";

/** A browser whose push service gives a new address each time. */
class Browser {
  permission: NotificationPermission = "granted";
  answer: NotificationPermission = "granted";
  subscription: object | null = null;
  canSubscribe = true;
  ended: string[] = [];
  #count = 0;

  constructor() {
    const { ended } = this;
    const manager = {
      getSubscription: async () => this.subscription,
      subscribe: async ({ applicationServerKey }: { applicationServerKey: Uint8Array }) => {
        if (!this.canSubscribe) throw new Error("no push service");
        this.#count += 1;
        this.subscription = this.made(`https://push.example/${this.#count}`, base64url.encode(applicationServerKey));
        return this.subscription;
      },
    };
    vi.stubGlobal("navigator", {
      userAgent: PHONE,
      serviceWorker: { ready: Promise.resolve({ pushManager: manager }) },
    });
    vi.stubGlobal("PushManager", class {});
    vi.stubGlobal("window", { matchMedia: () => ({ matches: false }) });
    vi.stubGlobal("location", { href: "https://gw.example/#/devices" });
    const read = (): NotificationPermission => this.permission;
    const ask = (): NotificationPermission => {
      this.permission = this.answer;
      return this.permission;
    };
    vi.stubGlobal("Notification", {
      get permission() {
        return read();
      },
      requestPermission: async () => ask(),
    });
    this.ended = ended;
  }

  made(endpoint: string, key: string): object {
    return {
      endpoint,
      options: { applicationServerKey: base64url.decode(key)?.buffer ?? null },
      toJSON: () => ({ keys: { p256dh: "P", auth: "A" } }),
      unsubscribe: async () => {
        this.ended.push(endpoint);
        this.subscription = null;
      },
    };
  }
}

const REGISTERED = { endpoint: "https://push.example/0", vapidKey: KEY, label: "ada's phone" };

async function start(settings: NoticeSettings, channel?: object) {
  const ringing = await Ringing.start(settings);
  const browser = new Browser();
  const store = new Store();
  store.database = ringing.database;
  store.approver = new Approver(new Http({ gateway: "https://gw.example", credential: "x" }), "ada", ringing.keys);
  store.set({ profile: await readProfile(ringing.database) });
  const own = { id: ringing.keys.fingerprint, kind: "webPush", label: "", host: "push.example" };
  const list = channel === undefined ? [] : [{ ...own, createdAt: "2026-11-18T12:00:00Z", ...channel }];
  ringing.notices = { vapidPublicKey: KEY, channels: list, quietHours: null };
  return { ringing, browser, store, notices: new Notices(store) };
}

const registrations = (ringing: Ringing) =>
  (ringing.told(/^PUT .*\/channels\//) as { endpoint: string }[]).map(({ endpoint }) => endpoint);
const failing = (reason: string) => ({ failing: { since: "2026-11-18T12:00:00Z", reason } });

afterEach(() => vi.unstubAllGlobals());

describe("at every start", () => {
  test("nothing is done where everything is as it was", async () => {
    const { ringing, browser, store, notices } = await start({ registered: REGISTERED }, {});
    browser.subscription = browser.made(REGISTERED.endpoint, KEY);
    await notices.check();
    expect(store.state.notices).toMatchObject({ status: "on", isSilent: false, wasRepaired: false });
    expect(ringing.sent).toEqual([]);
  });

  test.each<[string, object | undefined, [string, string] | undefined, readonly string[]]>([
    ["the browser has lost its subscription", {}, undefined, []],
    ["the push service gave another address", {}, ["https://push.example/7", KEY], []],
    ["the gateway has lost the channel", undefined, [REGISTERED.endpoint, KEY], []],
    ["the gateway has a new key", {}, [REGISTERED.endpoint, OLD_KEY], [REGISTERED.endpoint]],
    ["the push service says that it is gone", failing("gone"), [REGISTERED.endpoint, KEY], [REGISTERED.endpoint]],
  ])("%s: it is registered again, and said", async (_, channel, subscribed, ended) => {
    const { ringing, browser, store, notices } = await start({ registered: REGISTERED }, channel);
    browser.subscription = subscribed === undefined ? null : browser.made(...subscribed);
    await notices.check();
    const { endpoint } = browser.subscription as unknown as { endpoint: string };
    expect(store.state.notices).toMatchObject({ status: "on", wasRepaired: true });
    expect(registrations(ringing)).toEqual([endpoint]);
    expect(browser.ended).toEqual(ended);
    expect(store.state.profile?.notices?.registered).toEqual({ ...REGISTERED, endpoint });
  });

  test.each<[string, (browser: Browser) => void, string]>([
    [
      "permission was revoked",
      (browser) => {
        browser.permission = "denied";
      },
      "blocked",
    ],
    [
      "permission was reset",
      (browser) => {
        browser.permission = "default";
      },
      "stopped",
    ],
    [
      "the push service is not there",
      (browser) => {
        browser.canSubscribe = false;
      },
      "stopped",
    ],
  ])("%s: it is said", async (_, change, status) => {
    const { browser, store, notices } = await start({ registered: REGISTERED }, {});
    change(browser);
    await notices.check();
    expect(store.state.notices).toMatchObject({ status, isSilent: true });
  });

  test("a channel that fails for another reason is said, and not made anew again and again", async () => {
    const { ringing, browser, store, notices } = await start({ registered: REGISTERED }, failing("refused"));
    browser.subscription = browser.made(REGISTERED.endpoint, KEY);
    await notices.check();
    expect(store.state.notices).toMatchObject({ status: "on", isSilent: true });
    expect(ringing.sent).toEqual([]);
  });

  test("a device that nobody has switched on is left alone, whatever stands in the way", async () => {
    const { ringing, browser, store, notices } = await start({});
    await notices.check();
    expect(store.state.notices).toMatchObject({ status: "off", isSilent: false });
    browser.permission = "denied";
    await notices.check();
    expect(store.state.notices).toMatchObject({ status: "blocked", isSilent: false });
    vi.stubGlobal("navigator", { userAgent: "iPhone" });
    await notices.check();
    expect(store.state.notices.status).toBe("homeScreen");
    vi.stubGlobal("navigator", { userAgent: "Lynx" });
    await notices.check();
    expect(store.state.notices.status).toBe("unsupported");
    ringing.answer = () => new Response("{}", { status: 404 });
    await notices.check();
    expect(store.state.notices.status).toBe("noRelay");
    expect(ringing.sent).toEqual([]);
  });

  test("quiet hours go with the clock of the device that has set them", async () => {
    const hours = { from: "22:00", to: "07:00", utcOffsetMinutes: 720 };
    const { ringing, notices } = await start({ utcOffsetMinutes: 720 });
    ringing.notices = { ...ringing.notices, quietHours: hours };
    await notices.check();
    expect(ringing.told(/^PUT .*\/quiet-hours$/)).toEqual([{ ...hours, utcOffsetMinutes: utcOffset() }]);
    // Another device, which has set none, changes nothing.
    const other = await start({});
    other.ringing.notices = { ...other.ringing.notices, quietHours: hours };
    await other.notices.check();
    expect(other.ringing.sent).toEqual([]);
  });
});

describe("switched on", () => {
  test("asks, subscribes and registers under this device's name", async () => {
    const { ringing, browser, store, notices } = await start({});
    browser.permission = "default";
    await notices.switchOn();
    expect(registrations(ringing)).toEqual(["https://push.example/1"]);
    expect(ringing.sent[0]).toMatchObject({
      call: `PUT /platform/v1/approvers/ada/notifications/channels/${ringing.keys.fingerprint}`,
      body: { kind: "webPush", label: "ada's phone", keys: { p256dh: "P", auth: "A" }, page: "https://gw.example/" },
    });
    expect(store.state.notices.status).toBe("on");
  });

  test("refused by the person, it says what to do and registers nothing", async () => {
    const { ringing, browser, store, notices } = await start({});
    browser.answer = "denied";
    await notices.switchOn();
    expect(store.state.notices.status).toBe("blocked");
    browser.answer = "default";
    await expect(notices.switchOn()).rejects.toThrow(texts.notifyDismissed);
    expect(ringing.sent).toEqual([]);
  });

  test.each([
    [409, texts.notifyTooMany],
    [422, texts.notifyNotAllowed],
  ])("refused by the gateway with %i, it says why", async (status, words) => {
    const { ringing, store, notices } = await start({});
    ringing.answer = (call) => (call.startsWith("PUT ") ? new Response("{}", { status }) : undefined);
    await expect(notices.switchOn()).rejects.toThrow(words);
    expect(store.state.profile?.notices?.registered).toBeUndefined();
  });

  test("without a push service it says so", async () => {
    const { browser, notices } = await start({});
    browser.canSubscribe = false;
    await expect(notices.switchOn()).rejects.toThrow(texts.notifyNoService);
  });

  test("and off again, the gateway and the browser forget it", async () => {
    const { ringing, browser, store, notices } = await start({ registered: REGISTERED, showsRequests: true }, {});
    browser.subscription = browser.made(REGISTERED.endpoint, KEY);
    await notices.stop(notices.channel);
    expect(ringing.told(/^DELETE .*\/channels\//).length).toBe(1);
    expect(browser.ended).toEqual([REGISTERED.endpoint]);
    expect(store.state.profile?.notices).toEqual({ showsRequests: true });
    expect(store.state.notices.status).toBe("off");
  });
});

describe("a test", () => {
  test("waits until the device says that it was shown", async () => {
    const { ringing, store, notices } = await start({ registered: REGISTERED }, {});
    ringing.answer = (call) => {
      if (!call.endsWith("/test")) return undefined;
      const [channel] = (ringing.notices as { channels: object[] }).channels;
      const displayed = { ...channel, displayedAt: "2026-11-18T12:01:05Z" };
      setTimeout(() => {
        ringing.notices = { ...ringing.notices, channels: [displayed] };
      }, 300);
      return new Response('{"accepted":true}');
    };
    expect(await notices.test(notices.channel)).toEqual({ isAccepted: true, isShown: true });
    expect(`${store.state.notices.read?.channels[0]?.displayedAt}`).toBe("2026-11-18T12:01:05Z");
  });

  test("that the service refuses says why at once", async () => {
    const { ringing, notices } = await start({ registered: REGISTERED }, {});
    ringing.answer = (call) =>
      call.endsWith("/test") ? new Response('{"accepted":false,"reason":"gone","status":410}') : undefined;
    expect(await notices.test(notices.channel)).toEqual({ isAccepted: false, reason: "gone", isShown: false });
  });
});

describe("a test every week", () => {
  test.each<[string, object, boolean | undefined]>([
    ["is not offered by an older gateway", {}, undefined],
    ["is off", { weeklyTest: false }, false],
    ["is on", { weeklyTest: true }, true],
  ])("%s", async (_, more, expected) => {
    const { ringing, store, notices } = await start({});
    ringing.notices = { ...ringing.notices, ...more };
    await notices.check();
    expect(store.state.notices.read?.weeklyTest).toBe(expected);
  });

  test("is switched on and off", async () => {
    const { ringing, store, notices } = await start({});
    const path = "/platform/v1/approvers/ada/notifications/weekly-test";
    ringing.answer = (call) => {
      if (call.endsWith("/weekly-test")) ringing.notices = { ...ringing.notices, weeklyTest: call.startsWith("PUT ") };
      return undefined;
    };
    await notices.setWeeklyTest(true);
    expect(store.state.notices.read?.weeklyTest).toBe(true);
    await notices.setWeeklyTest(false);
    expect(store.state.notices.read?.weeklyTest).toBe(false);
    expect(ringing.sent).toEqual([
      { call: `PUT ${path}`, body: {} },
      { call: `DELETE ${path}`, body: null },
    ]);
  });
});

describe("a webhook", () => {
  const HOOK = { label: "Chat", endpoint: "https://hooks.example/1", format: "slack" } as const;
  const answered = (call: string) => (call.startsWith("PUT ") ? new Response('{"secret":"whsec_x"}') : undefined);

  test("sends what docs/notifications.md says for its program", () => {
    const docs = readFileSync(new URL("../../docs/notifications.md", import.meta.url), "utf8");
    const row = (receiver: string): string[] =>
      (new RegExp(`^\\| ${receiver} \\| .*`, "m").exec(docs)?.[0] ?? "")
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().replaceAll("`", "").replaceAll("\\|", "|"));
    expect(row("Slack").slice(2, 4)).toEqual([FORMATS.slack.template, ""]);
    expect(row("ntfy").slice(2, 4)).toEqual([FORMATS.plain.template, FORMATS.plain.contentType]);
    expect(FORMATS.signed).toEqual({});
  });

  test("is set with the page that it leads to, and its secret comes back", async () => {
    const { ringing, store, notices } = await start({});
    ringing.answer = answered;
    const { label, endpoint } = HOOK;
    expect(await notices.setWebhook("chat", HOOK)).toBe("whsec_x");
    expect(ringing.sent).toEqual([
      {
        call: "PUT /platform/v1/approvers/ada/notifications/channels/chat",
        body: { kind: "webhook", label, endpoint, page: "https://gw.example/", ...FORMATS.slack },
      },
    ]);
    expect(store.state.notices.read).toBeDefined();
    // The secret is shown even if nothing else can be read.
    ringing.answer = (call) => answered(call) ?? new Response("{}", { status: 403 });
    expect(await notices.setWebhook("chat", HOOK)).toBe("whsec_x");
  });

  test.each([
    [409, texts.hookTooMany],
    [422, texts.hookNotAllowed],
    [403, "the gateway refused: status 403"],
  ])("refused by the gateway with %i, it says why", async (status, words) => {
    const { ringing, notices } = await start({});
    ringing.answer = () => new Response("{}", { status });
    await expect(notices.setWebhook("chat", HOOK)).rejects.toThrow(words);
  });

  test.each([
    ["https://ntfy.sh/dana", "plain"],
    [" https://ntfy.example.org/dana ", "plain"],
    ["https://hooks.slack.com/services/T/B/X", "slack"],
    ["https://hooks.slack.com.example/", "signed"],
    ["http://10.0.0.7:8080/", "signed"],
  ])("%s is an address, usually for %s", (text, format) => {
    expect(usualFormat(hookAddress(text)?.hostname ?? "")).toBe(format);
  });

  test.each(["", "ntfy.sh/dana", "hooks", "ftp://ntfy.sh/", "javascript:alert(1)", "https://"])(
    "%j is no address",
    (text) => expect(hookAddress(text)).toBeUndefined(),
  );
});
