// From `countersign exec` to a notification while the page is closed, to a signed answer; and a webhook that verifies. demo/ring.sh
// runs this by itself.
//
// Chromium without Google's network has no push service. So web-push-testing is the service, and two ends are played: the page's
// `PushManager` hands out the service's subscription, and what the service has decrypted is handed to the worker. Everything
// between these is real: the gateway sends, the service checks and decrypts, the worker shows and signs.

import { existsSync } from "node:fs";
import { join } from "node:path";

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { openBrowser, Person } from "./browser.ts";
import { PushService, type Received, type Subscription, senderOf } from "./push-service.ts";
import { fakePushService, Pushes } from "./pushes.ts";
import { type Machine, type Running, Stage, until } from "./stage.ts";
import { isSigned, WebhookReceiver } from "./webhook.ts";

const PHONE_AGENT =
  "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36";
const WAITS = "A request is waiting.";

interface Message {
  readonly notification: { readonly body: string };
  readonly countersign: { readonly kind: string; readonly requestIds: readonly string[] };
}

const begun = Date.now();
const stage = new Stage();
const hooks = new WebhookReceiver();
let steps = 0;
let service: PushService;
let browser: Browser;
let dana: Person;
let vm: Machine;
let pushes: Pushes;
let subscription: Subscription;
let [handed, secret, asApprover, asEnforcer] = [0, "", "", ""];

/** One step of the story, which is counted if it held. */
const step = (name: string, run: () => Promise<void>): void =>
  test(name, async () => {
    await run();
    steps += 1;
  });

beforeAll(async () => {
  service = await PushService.start();
  await hooks.start();
  await stage.start("[notifications]", 'allowed_networks = ["127.0.0.1"]');
  browser = await openBrowser();
  dana = await Person.open(browser, stage, { userAgent: PHONE_AGENT, permissions: ["notifications"] });
  await dana.context.exposeBinding("subscribeAtService", async (_, key: string) => {
    subscription = await service.subscribe(key);
    return subscription;
  });
  await dana.context.addInitScript(fakePushService);
  asApprover = stage.key("approver", "dana");
  asEnforcer = stage.key("enforcer", "vm");
});
afterAll(async () => {
  await browser?.close();
  await stage.end();
  await hooks.end();
  service?.end();
  console.log(
    `${steps} steps held, ${Math.round((Date.now() - begun) / 1000)} s. Chromium has no push service here: web-push-testing was the service, ` +
      "and the test carried its subscription to the page and its decrypted messages to the worker. No phone was involved.",
  );
});

async function call<T>(key: string, path: string, method = "GET", body?: object): Promise<T> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await fetch(`${stage.url}/platform/v1/${path}`, { method, headers, ...sent });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

/** The next message that the service has decrypted, and how it came. It goes to the worker. */
async function carry(): Promise<{ readonly message: Message; readonly received: Received }> {
  const text = await until("the service has a message", async () => (await service.messages(subscription))[handed]);
  const received = (await service.received())[handed];
  if (received === undefined) throw new Error("a message came by no request");
  handed += 1;
  await pushes.hand(text);
  return { message: JSON.parse(text) as Message, received };
}

async function closePage(): Promise<void> {
  await dana.page.goto("about:blank");
  await until("the page is gone", () => pushes.isAlone());
}

describe("a phone that is told", () => {
  step("1 Dana joins, pairs with a machine, and switches notifications on with one tap", async () => {
    await dana.join(stage.invite("approver", "dana"));
    vm = await stage.machine("vm");
    await dana.pairByLink(vm);
    await dana.press("Notify this phone");
    await dana.page.getByText("Be told when something waits").waitFor({ state: "detached" });
    pushes = await Pushes.to(dana);
    expect(subscription.endpoint.startsWith(`${service.url}/notify/`)).toBe(true);
  });

  step("2 a test goes from the gateway to the push service, is shown, and the page says so", async () => {
    await dana.tab("Devices");
    await dana.openFold("this phone");
    await dana.press("Send a test");
    const { message, received } = await carry();
    expect(message.countersign).toMatchObject({ kind: "test", requestIds: [] });
    await pushes.shows("This is a test. Notifications work.");
    const { vapidPublicKey } = await call<{ vapidPublicKey: string }>(asApprover, "approvers/dana/notifications");
    expect(senderOf(received)).toMatchObject({ key: vapidPublicKey, aud: service.url });
    await dana.page.locator("div", { hasText: /^Shown on the device\d\d:\d\d:\d\d$/ }).waitFor();
    await pushes.tap();
  });

  step("3 Dana adds a webhook, whose secret the gateway makes", async () => {
    const channel = { kind: "webhook", label: "Chat", endpoint: hooks.url, page: `${stage.url}/` };
    const path = "approvers/dana/notifications/channels/chat";
    ({ secret } = await call<{ secret: string }>(asApprover, path, "PUT", channel));
    expect(secret).toMatch(/^whsec_/);
  });
});

describe("a request while the page is closed", () => {
  let asked: Running;
  let requestId = "";

  step(
    "4 countersign exec asks; the service gets it and decrypts it; the notification says nothing of it",
    async () => {
      await closePage();
      asked = vm.start("exec", "--", "touch", "rejected.txt");
      const { message, received } = await carry();
      expect(message.countersign).toMatchObject({ kind: "request", approverId: "dana" });
      requestId = message.countersign.requestIds[0] ?? "";
      expect(requestId).not.toBe("");
      expect(await pushes.shows(WAITS)).toEqual([{ title: "Countersign", body: WAITS, actions: ["Open"] }]);
      const everything = JSON.stringify([message, received, Buffer.from(received.body, "base64").toString("latin1")]);
      for (const word of ["touch", "rejected.txt"]) expect(everything).not.toContain(word);
      // Who carries it learns no id either.
      expect(JSON.stringify(received)).not.toContain(requestId);
      expect(received.headers).toMatchObject({ "content-encoding": "aes128gcm", urgency: "high" });
      expect(Number(received.headers["ttl"])).toBeGreaterThan(0);
    },
  );

  step("5 the webhook came too, its signature verifies, and it says nothing of the request", async () => {
    const hook = await until("a webhook", () => hooks.got[0]);
    expect(isSigned(hook, secret)).toBe(true);
    expect(isSigned({ ...hook, body: `${hook.body} ` }, secret)).toBe(false);
    expect(isSigned(hook, `whsec_${Buffer.alloc(32).toString("base64")}`)).toBe(false);
    const said = { type: "request.waiting", data: { text: WAITS, link: `${stage.url}/` } };
    expect(JSON.parse(hook.body)).toEqual(said);
    expect(JSON.stringify(hook)).not.toContain(requestId);
  });

  step("6 the machine learns when it was sent, accepted and shown", async () => {
    type Times = { channel: string; label: string; sentAt: string; acceptedAt?: string; displayedAt?: string };
    const read = async () => {
      const path = `exchanges/${requestId}/progress`;
      const { approvers } = await call<{ approvers: { notified?: Times[] }[] }>(asEnforcer, path);
      const notified = approvers[0]?.notified ?? [];
      const [phone, chat] = [
        notified.find(({ channel }) => channel !== "chat"),
        notified.find((it) => it.channel === "chat"),
      ];
      return phone?.displayedAt === undefined || chat?.acceptedAt === undefined ? undefined : { phone, chat };
    };
    const { phone, chat } = await until("it was shown", read);
    expect([phone.label, chat.label]).toEqual(["dana's phone", "Chat"]);
    expect([phone.sentAt, phone.acceptedAt, phone.displayedAt].toSorted()).toEqual([
      phone.sentAt,
      phone.acceptedAt,
      phone.displayedAt,
    ]);
    expect(chat.displayedAt).toBeUndefined();
  });

  step("7 a tap opens the request; rejected there, exec gets the verified answer and runs nothing", async () => {
    const [place] = await pushes.tap();
    expect(place).toBe(`/#/request/${requestId}`);
    await dana.page.goto(`${stage.url}${place}`);
    await dana.page.locator(".review", { hasText: "touch rejected.txt" }).waitFor();
    await dana.answer("Reject");
    expect(await asked.ended, asked.text()).toBe(81);
    expect(asked.text()).toContain("Rejected by dana");
    expect(existsSync(join(vm.work, "rejected.txt"))).toBe(false);
  });
});

describe("answers", () => {
  step("8 rejected from the notification itself, signed by the worker, with the page closed", async () => {
    await dana.page.goto(`${stage.url}/#/devices`);
    const shows = dana.page.getByRole("checkbox", { name: "Show what is asked in notifications" });
    await shows.check();
    await until("it is kept", () => shows.isEnabled());
    await closePage();
    const asked = vm.start("exec", "--", "touch", "never.txt");
    const { message } = await carry();
    expect(message.notification.body).toBe(WAITS);
    const [notice] = await until("a notification", async () => {
      const shown = await pushes.shown();
      return shown.length === 0 ? undefined : shown;
    });
    // The sentence was made on the device.
    expect(notice).toMatchObject({ body: "Runs touch", actions: ["Open", "Reject"] });
    expect(await pushes.tap("reject")).toEqual([]);
    expect(await asked.ended, asked.text()).toBe(81);
    expect(asked.text()).toContain("Rejected by dana");
    expect(existsSync(join(vm.work, "never.txt"))).toBe(false);
    expect(await pushes.isAlone()).toBe(true);
    await pushes.shows();
  });

  step("9 approved on the page that the notification opens: exec verifies it, and the command runs", async () => {
    const asked = vm.start("exec", "--", "touch", "approved.txt");
    const { message } = await carry();
    await until("a notification", async () => (await pushes.shown()).length > 0);
    const [place] = await pushes.tap("open");
    expect(place).toBe(`/#/request/${message.countersign.requestIds[0]}`);
    await dana.page.goto(`${stage.url}${place}`);
    await dana.page.locator(".review", { hasText: "touch approved.txt" }).waitFor();
    await dana.press(/^Approve/);
    expect(await asked.ended, asked.text()).toBe(0);
    expect(asked.text()).toContain("approved by dana");
    expect(existsSync(join(vm.work, "approved.txt"))).toBe(true);
  });

  step(
    "10 three requests were three messages and three webhooks that verify; nothing went wrong in the page",
    async () => {
      await until("three webhooks", () => hooks.got.length === 3);
      expect(hooks.got.map((hook) => isSigned(hook, secret))).toEqual([true, true, true]);
      expect(new Set(hooks.got.map(({ headers }) => headers["webhook-id"])).size).toBe(3);
      // A test, and one for each request.
      expect((await service.received()).length).toBe(4);
      expect([dana.problems, dana.foreign]).toEqual([[], []]);
    },
  );
});
