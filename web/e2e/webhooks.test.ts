// Webhooks that a person sets up on the page: each form of message as it arrives, the secret and its replacement, and what
// stands in the way. Also what else the list of channels has.

import { generateKeyPairSync } from "node:crypto";

import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { axe } from "./axe.ts";
import { openBrowser, Person } from "./browser.ts";
import { Robot } from "./robot.ts";
import { Stage, until } from "./stage.ts";
import { type Hook, isSigned, WebhookReceiver } from "./webhook.ts";

const TEST = "This is a test. Notifications work.";

const stage = new Stage();
const hooks = new WebhookReceiver();
let browser: Browser;
let dana: Person;
let key = "";
let first = "";

beforeAll(async () => {
  await hooks.start();
  await stage.start("[notifications]", 'allowed_networks = ["127.0.0.1"]');
  browser = await openBrowser();
  dana = await Person.open(browser, stage, { permissions: ["clipboard-read", "clipboard-write"] });
  key = stage.key("approver", "dana");
  await dana.join(stage.invite("approver", "dana"));
  await dana.pairWith(await Robot.join(stage, "build-1"));
  await dana.page.goto(`${stage.url}/#/devices`);
});
afterAll(async () => {
  await browser?.close();
  await stage.end();
  await hooks.end();
});

async function put(channel: string, body: object): Promise<number> {
  const path = `${stage.url}/platform/v1/approvers/dana/notifications/channels/${channel}`;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(path, { method: "PUT", headers, body: JSON.stringify(body) });
  return answer.status;
}

const fold = (name: string): Locator =>
  dana.page.locator("details", { has: dana.page.locator("summary", { hasText: name }) });
const button = (of: Locator, name: string): Locator => of.getByRole("button", { name, exact: true });

/** Opens a fold, if it is not open. */
async function opened(name: string): Promise<Locator> {
  const one = fold(name);
  await one.waitFor();
  if ((await one.getAttribute("open")) === null) await one.locator("summary").click();
  return one;
}

async function fill(form: Locator, name: string, address: string, format?: string): Promise<void> {
  await form.getByLabel("Name").fill(name);
  await form.getByLabel("Address").fill(address);
  if (format !== undefined) await form.getByRole("radio", { name: format }).check();
}

/** The webhook that the next test sends. The gateway takes one test in three seconds. */
async function tested(of: Locator): Promise<Hook> {
  const before = hooks.got.length;
  await dana.page.waitForTimeout(3_000);
  await dana.tap(button(of, "Send a test"));
  await of.getByText("The service took it.").waitFor();
  return until("a webhook", () => hooks.got[before]);
}

describe("a webhook", () => {
  test("says what it is for, and what is wrong with an address", async () => {
    const form = await opened("Add a webhook");
    await form.getByText("Nobody can answer through it.", { exact: false }).waitFor();
    await dana.tap(button(form, "Add"));
    await form.getByText("Enter a whole address, such as https://ntfy.sh/my-topic.").waitFor();
    for (const address of ["http://10.0.0.7/hook", "https://192.168.1.5/hook", "http://hooks.example/"]) {
      await fill(form, "Chat", address);
      await dana.tap(button(form, "Add"));
      await form.getByText("This relay may not call that address.", { exact: false }).waitFor();
      await form.getByText("add it to allowed_networks under [notifications]", { exact: false }).waitFor();
      expect(await axe(dana)).toEqual([]);
    }
    // What the address says of its program is chosen, until the person chooses.
    for (const [address, format] of [
      ["https://hooks.slack.com/services/T/B/X", "Slack message"],
      ["https://ntfy.sh/dana", "Plain text"],
      ["https://example.com/", "Signed message"],
    ] as const) {
      await form.getByLabel("Address").fill(address);
      await until(format, () => form.getByRole("radio", { name: format }).isChecked());
    }
  });

  test("without a network says so, and is added once when it is there again", async () => {
    const form = await opened("Add a webhook");
    await fill(form, "Chat", hooks.url);
    stage.front.down();
    await dana.tap(button(form, "Add"));
    await form.getByText("The relay can't be reached. Check the connection, and try again.").waitFor();
    stage.front.up();
    await dana.tap(button(form, "Add"));
    await form.getByText("Chat is added.").waitFor();
    expect(await fold("Chat · webhook").count()).toBe(1);
  });

  test("shows its secret once, which verifies what is sent", async () => {
    const form = fold("Add a webhook");
    await form.getByText("It is shown only now.", { exact: false }).waitFor();
    first = await form.getByLabel("Secret").inputValue();
    expect(first).toMatch(/^whsec_/);
    await dana.tap(button(form, "Copy"));
    await button(form, "Copied").waitFor();
    expect(await dana.page.evaluate(() => navigator.clipboard.readText())).toBe(first);
    expect(await axe(dana)).toEqual([]);
    const hook = await tested(form);
    expect(isSigned(hook, first)).toBe(true);
    expect(JSON.parse(hook.body)).toMatchObject({ data: { text: TEST, link: `${stage.url}/` } });
    await dana.tap(button(form, "Done"));
    await form.getByLabel("Address").waitFor();
    expect(await form.getByLabel("Address").inputValue()).toBe("");
    expect(await dana.page.content()).not.toContain(first);
    await (await opened("Chat · webhook")).getByText("Last taken").waitFor();
  });

  test.each([
    ["ntfy", "Plain text", "text/plain", () => `${TEST} ${stage.url}/`],
    ["Team", "Slack message", "application/json", () => `{"text":"${TEST} <${stage.url}/|Open>"}`],
  ])("for %s is a %s, and no secret is shown", async (name, format, type, body) => {
    const form = await opened("Add a webhook");
    await fill(form, name, hooks.url, format);
    await dana.tap(button(form, "Add"));
    await form.getByText(`${name} is added.`).waitFor();
    expect(await form.getByLabel("Secret").count()).toBe(0);
    const hook = await tested(form);
    expect(hook.body).toBe(body());
    expect(hook.headers["content-type"]).toBe(type);
    await dana.tap(button(form, "Done"));
  });

  test("gets another secret, and the old one counts for a day", async () => {
    const chat = await opened("Chat · webhook");
    await dana.tap(button(chat, "Change address or secret"));
    await chat.getByText("the old one stays valid for 24 hours", { exact: false }).waitFor();
    expect(await chat.getByLabel("Name").inputValue()).toBe("Chat");
    expect(await axe(dana)).toEqual([]);
    await chat.getByLabel("Address").fill(hooks.url);
    await dana.tap(button(chat, "Save"));
    await chat.getByText("Chat is saved.").waitFor();
    const second = await chat.getByLabel("Secret").inputValue();
    expect(second).not.toBe(first);
    const hook = await tested(chat);
    expect([isSigned(hook, second), isSigned(hook, first)]).toEqual([true, true]);
    await dana.tap(button(chat, "Done"));
    expect(await fold("Chat · webhook").count()).toBe(1);
  });

  test("whose address is gone says so, and is repaired in its place, with its secret before the person's eyes", async () => {
    const chat = await opened("Chat · webhook");
    hooks.status = 410;
    await dana.page.waitForTimeout(3_000);
    await dana.tap(button(chat, "Send a test"));
    await chat.getByText("There is nothing at this address any more.", { exact: false }).waitFor();
    await chat.getByText("The test didn't get through. See above.").waitFor();
    await chat.getByText("Not working").waitFor();
    expect(await axe(dana)).toEqual([]);
    hooks.status = 204;
    await dana.tap(button(chat, "Change address or secret"));
    await chat.getByLabel("Address").fill(hooks.url);
    await dana.tap(button(chat, "Save"));
    await chat.getByText("Not working").waitFor({ state: "detached" });
    const third = await chat.getByLabel("Secret").inputValue();
    expect(await chat.getByLabel("Secret").isVisible()).toBe(true);
    expect(isSigned(await tested(chat), third)).toBe(true);
    await dana.tap(button(chat, "Done"));
  });

  test("is removed after a question", async () => {
    const team = await opened("Team · webhook");
    await dana.tap(button(team, "Remove"));
    await team.getByText("Remove Team?", { exact: false }).waitFor();
    expect(await axe(dana)).toEqual([]);
    await dana.tap(button(team, "Cancel"));
    await dana.tap(button(team, "Remove"));
    await dana.settle();
    await dana.tap(button(team, "Remove"));
    await team.waitFor({ state: "detached" });
    await fold("ntfy · webhook").waitFor();
  });
});

describe("the list", () => {
  test("has what an app has registered at UnifiedPush, for which there is no form", async () => {
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const { x = "", y = "" } = publicKey.export({ format: "jwk" });
    const point = Buffer.concat([Buffer.of(4), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]);
    const keys = { p256dh: point.toString("base64url"), auth: Buffer.alloc(16, 7).toString("base64url") };
    const app = { kind: "unifiedPush", label: "Tablet", endpoint: hooks.url, page: `${stage.url}/`, keys };
    expect(await put("tablet", app)).toBe(200);
    await dana.page.reload();
    const tablet = await opened("Tablet · UnifiedPush");
    await tablet.getByText("Shown on the device").waitFor();
    expect(await button(tablet, "Change address or secret").count()).toBe(0);
    await button(tablet, "Stop notifying").waitFor();
    expect(await dana.page.getByRole("radio", { name: "UnifiedPush" }).count()).toBe(0);
    expect(await axe(dana)).toEqual([]);
  });

  test("has a switch for a test every week, where the gateway sends one", async () => {
    const weekly = dana.page.getByRole("checkbox", { name: "Test every week" });
    await dana.page.route(/\/notifications$/, async (route) => {
      const answer = await route.fetch();
      const { weeklyTest: _, ...rest } = (await answer.json()) as Record<string, unknown>;
      await route.fulfill({ response: answer, json: rest });
    });
    await dana.page.reload();
    await fold("Tablet · UnifiedPush").waitFor();
    expect(await weekly.count()).toBe(0);
    await dana.page.unrouteAll({ behavior: "wait" });
    await dana.page.reload();
    await weekly.waitFor();
    expect(await weekly.isChecked()).toBe(false);
    await dana.page.getByText("so you know that your phone still rings", { exact: false }).waitFor();
    await weekly.check();
    await until("it is kept", () => weekly.isEnabled());
    expect(await axe(dana)).toEqual([]);
    await dana.page.reload();
    await weekly.waitFor();
    await until("it is on still", () => weekly.isChecked());
    await weekly.uncheck();
    await until("it is kept that it is off", () => weekly.isEnabled());
    await dana.page.reload();
    await weekly.waitFor();
    expect(await weekly.isChecked()).toBe(false);

    // A refusal is said, and the switch stands as the gateway has it.
    await dana.page.route(/\/notifications\/weekly-test$/, (route) => route.fulfill({ status: 403, json: {} }));
    await until("it takes clicks", () => weekly.isEnabled());
    await weekly.click();
    await dana.page.locator(".problem", { hasText: "This device may not do that." }).waitFor();
    await until("it is off as before", async () => !(await weekly.isChecked()));
    await dana.page.unrouteAll({ behavior: "wait" });
  });

  test("is full with sixteen, which is said with what to do", async () => {
    const hook = { kind: "webhook", label: "One more", endpoint: hooks.url, page: `${stage.url}/` };
    let status = 200;
    for (let count = 0; status === 200 && count < 20; count += 1) status = await put(`more-${count}`, hook);
    expect(status).toBe(409);
    await dana.page.reload();
    const form = await opened("Add a webhook");
    await fill(form, "Too many", hooks.url);
    await dana.tap(button(form, "Add"));
    await form.getByText("You are notified in sixteen ways already", { exact: false }).waitFor();
    expect(await form.getByLabel("Address").inputValue()).toBe(hooks.url);
  });

  test("nothing went wrong in the page, and nothing came from elsewhere", () => {
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
