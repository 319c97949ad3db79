// A gateway that lies on a WebSocket: messages that are changed, swapped, repeated, cut off, reordered or invented. Nothing
// executes, nothing is signed that was not shown, and the page goes on when the gateway is honest again.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import type { BuiltRequest } from "../src/protocol/request.ts";
import type { Person } from "./browser.ts";
import { frame, textFrame } from "./frames.ts";
import type { TamperMessage } from "./front.ts";
import type { Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { until } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;
let dana: Person;
let robot: Robot;
let asked = 0;

/** A name that no other request has. */
function unique(name: string): string {
  asked += 1;
  return `${name}${asked}`;
}

const MARKUP = '"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
const TEXT = 1;
const BINARY = 2;
const RESERVED = 5;

beforeAll(async () => {
  await scene.start();
  ({ dana, robot } = scene);
});
afterAll(() => scene.end());
afterEach(() => {
  stage.front.tamperMessage = undefined;
});

const isRequest = (message: string): boolean => message.includes('"approval.request"');

/** Lies about each request; other messages pass. Counts what it has changed. */
function lie(tamper: TamperMessage): { readonly count: number } {
  const lies = { count: 0 };
  stage.front.tamperMessage = (message) => {
    if (!isRequest(message)) return [message];
    lies.count += 1;
    return tamper(message);
  };
  return lies;
}

/** The page shows a new request, and its answer is accepted by the machine: everything works again. */
async function recovers(): Promise<void> {
  stage.front.tamperMessage = undefined;
  const name = unique("honest");
  const built = await robot.ask({ payload: robot.command(["make", name]) });
  await dana.open(`make ${name}`);
  await dana.answer("Reject");
  const decision = await robot.decision(built);
  expect(decision).toMatchObject({ outcome: "reject" });
  expect(decision.source).toContain(built.artifactHash);
}

/**
 * Opens the page anew, and waits until it is connected over a WebSocket: after a lie it may have chosen another transport. Its
 * first listing is over then, and can't find what comes later.
 */
async function connected(): Promise<void> {
  stage.front.tamperMessage = undefined;
  const listings = (): number => stage.front.answered.filter((path) => path.endsWith("/inbox")).length;
  await dana.page.goto("about:blank");
  const [before, listed] = [stage.front.upgrades, listings()];
  await dana.page.goto(`${stage.url}/#/`);
  await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached" });
  await until("a WebSocket", () => stage.front.upgrades > before);
  await until("a listing", () => listings() > listed);
}

/** Lists the inbox over HTTP, as the page does each minute. */
const wake = (): Promise<boolean> => dana.page.evaluate(() => window.dispatchEvent(new Event("online")));

async function isUntouched(built: BuiltRequest): Promise<void> {
  expect(await robot.isUndecided(built)).toBe(true);
  expect(await dana.page.evaluate(() => "hacked" in window)).toBe(false);
  await robot.withdraw(built);
}

describe("a gateway that lies on a WebSocket", () => {
  test.each([
    [
      "its content",
      (message: string) => message.replace(/"content":"(.)/, (_, first) => `"content":"${first === "A" ? "B" : "A"}`),
    ],
    [
      "its hash",
      (message: string) =>
        message.replace(/("artifactHash":")(.)/, (_, start, first) => `${start}${first === "0" ? "1" : "0"}`),
    ],
    ["its time", (message: string) => message.replace(/"expiresAt":"20/g, '"expiresAt":"21')],
    ["its type", (message: string) => message.replaceAll("command.review", "plan.review")],
    [
      "its id, to markup",
      (message: string) => message.replaceAll(/"requestId":"[^"]*"/g, `"requestId":${JSON.stringify(MARKUP)}`),
    ],
    ["its sender", (message: string) => message.replaceAll('"build-1"', '"stranger"')],
  ])("a request with a change of %s can't be answered, and the honest one is shown afterwards", async (_, change) => {
    await connected();
    const name = unique("changed");
    const lies = lie((message) => {
      const changed = change(message);
      expect(changed).not.toBe(message);
      return [changed];
    });
    const built = await robot.ask({ payload: robot.command(["make", name]) });
    await until("a lie", () => lies.count > 0);
    await dana.page.locator(".card.broken").first().waitFor();
    expect(await dana.page.locator(".row", { hasText: name }).count()).toBe(0);
    expect(await robot.isUndecided(built)).toBe(true);
    expect(await dana.page.evaluate(() => "hacked" in window)).toBe(false);
    stage.front.tamperMessage = undefined;
    await wake();
    await dana.open(`make ${name}`);
    await dana.answer("Reject");
    const decision = await robot.decision(built);
    expect(decision).toMatchObject({ outcome: "reject" });
    expect(decision.source).toContain(built.artifactHash);
  });

  test("two requests whose ids are swapped can't be answered as each other", async () => {
    await connected();
    const held: string[] = [];
    lie((message) => {
      held.push(message);
      const [one, two] = held;
      if (one === undefined || two === undefined || held.length > 2) return held.length > 2 ? [message] : [];
      const id = (text: string): string => /"requestId":"([^"]*)"/.exec(text)?.[1] ?? "";
      const swap = (text: string): string =>
        text.replaceAll(id(one), "\u0000").replaceAll(id(two), id(one)).replaceAll("\u0000", id(two));
      return [swap(one), swap(two)];
    });
    const one = await robot.ask({ payload: robot.command(["make", "one"]) });
    const two = await robot.ask({ payload: robot.command(["make", "two"]) });
    await until("two messages", () => held.length >= 2);
    await dana.settle();
    for (const built of [one, two]) {
      await dana.page.goto(`${stage.url}/#/request/${encodeURIComponent(built.requestId)}`);
      await dana.settle();
      expect(await dana.page.getByRole("button", { name: /^(Approve|Reject)/ }).count()).toBe(0);
    }
    await isUntouched(one);
    await isUntouched(two);
    await recovers();
  });

  test("a message that comes three times is one card", async () => {
    await connected();
    const lies = lie((message) => [message, message, message]);
    const built = await robot.ask({ payload: robot.command(["make", "thrice"]) });
    await dana.card("make thrice");
    await dana.settle();
    expect(lies.count).toBeGreaterThan(0);
    expect(await dana.page.locator(".row", { hasText: "make thrice" }).count()).toBe(1);
    await isUntouched(built);
    await recovers();
  });

  test("a withdrawal that comes before its request: the card leaves, and can't be approved", async () => {
    await connected();
    let held: string | undefined;
    stage.front.tamperMessage = (message) => {
      if (isRequest(message)) {
        held = message;
        return [];
      }
      const isWithdrawal = message.includes('"exchange.withdrawn"') && held !== undefined;
      return isWithdrawal ? [message, held ?? ""] : [message];
    };
    const built = await robot.ask({ payload: robot.command(["make", "reordered"]) });
    await until("the request", () => held !== undefined);
    await robot.withdraw(built);
    const card = await dana.card("make reordered");
    await card.filter({ hasText: "took this back." }).waitFor({ timeout: 20_000 });
    await card.waitFor({ state: "detached" });
    await recovers();
  });

  test.each([
    ["a text that is cut off", (message: string) => [message.slice(0, message.length / 2)]],
    ["a frame that is cut off", (message: string) => [textFrame(message).subarray(0, 50), "hang up"]],
    ["a text that is no UTF-8", () => [frame(TEXT, Buffer.from([0xff, 0xfe, 0x41]))]],
    ["an opcode that nobody knows", () => [frame(RESERVED, Buffer.from("x"))]],
    ["bytes that are no frame", () => [Buffer.from(`HTTP/1.1 200 OK\r\n\r\n${MARKUP}`)]],
    ["markup", () => [MARKUP]],
    ["nothing", () => []],
    ["binary", (message: string) => [frame(BINARY, Buffer.from(message.slice(1)))]],
    ["deep nesting", () => ["[".repeat(100_000)]],
    [
      "an envelope with markup in every member",
      (message: string) => [message.replaceAll(/:"[^"]*"/g, `:${JSON.stringify(MARKUP)}`)],
    ],
  ] as readonly [string, (message: string) => readonly (string | Buffer)[]][])(
    "in place of a request %s: the page goes on and finds the request by itself",
    async (_, instead) => {
      await connected();
      const name = unique("lost");
      const lies = lie((message) => {
        const sent = instead(message);
        if (sent.includes("hang up")) setTimeout(() => stage.front.hangUp(), 100);
        return sent.filter((one) => one !== "hang up");
      });
      const built = await robot.ask({ payload: robot.command(["make", name]) });
      await until("a lie", () => lies.count > 0);
      stage.front.tamperMessage = undefined;
      await wake();
      await dana.card(`make ${name}`);
      await isUntouched(built);
    },
  );

  test("what is invented about prompts and sessions executes nothing", async () => {
    await connected();
    const inventions = ["prompt.ack", "session.snapshot", "session.start", "exchange.withdrawn", "server.notice"].map(
      (msgType, at) =>
        JSON.stringify({
          msgType,
          msgId: `invented-${at}-${MARKUP}`,
          requestId: MARKUP,
          createdAt: new Date().toISOString(),
          sender: { enforcerId: MARKUP },
          body: { requestId: MARKUP, promptHash: MARKUP, status: MARKUP, sessionId: MARKUP, text: MARKUP },
        }),
    );
    const lies = lie((message) => [...inventions, message]);
    const built = await robot.ask({ payload: robot.command(["make", "invented"]) });
    await until("a lie", () => lies.count > 0);
    stage.front.tamperMessage = undefined;
    await dana.open("make invented");
    await dana.tab("Sessions");
    await dana.settle();
    await isUntouched(built);
    await recovers();
  });

  test.each(["decided", "delivered"])(
    "an invented end (%s) closes a request, and shows nothing as approved",
    async (state) => {
      await connected();
      const [listed, open] = [unique("listed"), unique("open")];
      const built = [
        await robot.ask({ payload: robot.command(["make", listed]) }),
        await robot.ask({ payload: robot.command(["make", open]) }),
      ] as const;
      await dana.card(`make ${listed}`);
      await dana.open(`make ${open}`);
      const ends = built.map(({ requestId, artifactHash }) => {
        const at = new Date().toISOString();
        const decision = { requestId, artifactHash, decision: "approve", scope: "session", signature: MARKUP };
        const body = { requestId, state, createdAt: at, expiresAt: at, artifactHash, decision };
        const head = { msgType: "exchange.status", requestId, createdAt: at, sender: { gatewayId: MARKUP } };
        return JSON.stringify({ ...head, body });
      });
      const lies = lie((message) => [...ends, message]);
      const trigger = await robot.ask({ payload: robot.command(["make", unique("trigger")]) });
      await until("a lie", () => lies.count > 0);
      await dana.page.locator(".answer-bar", { hasText: "Answered on another device" }).waitFor();
      expect(await dana.page.getByRole("button", { name: /^(Approve|Reject)/ }).count()).toBe(0);
      await dana.page.getByRole("link", { name: /^Inbox/ }).click();
      await dana.page.locator(".list .row", { hasText: listed }).waitFor({ state: "detached" });
      await dana.tab("History");
      await dana.settle();
      expect(await dana.page.locator(".pane .row", { hasText: /make (listed|open)/ }).count()).toBe(0);
      // An honest gateway still has them.
      await connected();
      for (const name of [listed, open]) await dana.card(`make ${name}`);
      for (const one of [...built, trigger]) await isUntouched(one);
    },
  );

  test("a request that is sent again with another content while it is open: what is signed is what was shown", async () => {
    await connected();
    let other = "";
    lie((message) => {
      other = message;
      return [message];
    });
    const swapped = await robot.ask({ payload: robot.command(["make", "swapped"]) });
    await until("the other request", () => other !== "");
    const built = await robot.ask({ payload: robot.command(["make", "shown"]) });
    await dana.open("make shown");
    const lies = lie((message) => [
      other.replaceAll(swapped.requestId, built.requestId).replace(/"msgId":"[^"]*"/, '"msgId":"another"'),
      message,
    ]);
    const trigger = await robot.ask({ payload: robot.command(["make", "trigger"]) });
    await until("a lie", () => lies.count > 0);
    await dana.settle();
    expect(await dana.page.locator(".exact .line.shell").allTextContents()).toEqual(["make shown"]);
    await dana.answer(/^Approve/);
    const decision = await robot.decision(built);
    expect(decision).toMatchObject({ outcome: "approve" });
    expect(decision.source).toContain(built.artifactHash);
    await isUntouched(swapped);
    await isUntouched(trigger);
  });

  test("nothing went wrong in the page, and nothing came from elsewhere", async () => {
    expect(await dana.page.locator("img, iframe, body script:not([src])").count()).toBe(0);
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
