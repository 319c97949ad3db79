// What must never approve: a tap on a fresh screen, a double tap, a key that is held, a stale view; and what is dangerous
// without the lock of the device and a second's hold.

import type { Browser, CDPSession } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { FRESH, openBrowser, Person } from "./browser.ts";
import { Robot } from "./robot.ts";
import { Stage } from "./stage.ts";

const stage = new Stage();
let browser: Browser;
let dana: Person;
let robot: Robot;
let devtools: CDPSession;
let authenticatorId: string;

const FORCE = {
  effects: [
    { effect: "publishes", detail: "origin main" },
    { effect: "rewritesHistory", detail: "main" },
  ],
};

beforeAll(async () => {
  await stage.start();
  browser = await openBrowser();
  dana = await Person.open(browser, stage);
  robot = await Robot.join(stage, "build-1");
  await dana.join(stage.invite("approver", "dana"));
  const { link, finish } = await robot.pair();
  await dana.page.goto(link);
  await dana.press("Pair");
  await finish();
  await dana.press("To the inbox");
  devtools = await dana.context.newCDPSession(dana.page);
  await devtools.send("WebAuthn.enable");
});
afterAll(async () => {
  await browser?.close();
  await stage.end();
});

async function withLock(isUserVerified: boolean): Promise<void> {
  const options = {
    protocol: "ctap2",
    transport: "internal",
    hasUserVerification: true,
    hasResidentKey: true,
    isUserVerified,
    automaticPresenceSimulation: true,
  } as const;
  ({ authenticatorId } = await devtools.send("WebAuthn.addVirtualAuthenticator", { options }));
}

/** Holds the approve button for so long. */
async function hold(millis: number): Promise<void> {
  const button = dana.page.getByRole("button", { name: /^Hold to approve/ });
  const box = await button.boundingBox();
  if (box === null) throw new Error("there is no button to hold");
  await dana.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await dana.page.mouse.down();
  await dana.page.waitForTimeout(millis);
  await dana.page.mouse.up();
}

describe("nothing is approved by accident", () => {
  test("a tap in the first half second, a double tap, and Enter on a fresh screen do nothing", async () => {
    const built = await robot.ask({ payload: robot.command(["cargo", "test"]) });
    const card = dana.page.locator(".list .card", { hasText: "cargo test" }).first();
    await card.waitFor();
    await dana.settle();
    await card.click();
    const approve = dana.page.getByRole("button", { name: /^Approve/ });
    await approve.click();
    await dana.page.keyboard.press("Enter");
    await dana.page.keyboard.press("a");
    await dana.page.keyboard.press("y");
    expect(await robot.isUndecided(built)).toBe(true);
    await dana.page.waitForTimeout(FRESH);
    // Enter on a screen that nobody has touched: the focus is on the heading.
    await dana.page.keyboard.press("Enter");
    await dana.page.keyboard.press("y");
    await dana.page.waitForTimeout(200);
    expect(await robot.isUndecided(built)).toBe(true);
    // A click that a program makes.
    await approve.evaluate((button: HTMLElement) => button.click());
    await dana.page.waitForTimeout(200);
    expect(await robot.isUndecided(built)).toBe(true);
    await robot.withdraw(built);
    await dana.page.locator(".answer-bar", { hasText: "Taken back by the machine" }).waitFor();
  });

  test("keys: a then y approves, a key that is held does not", async () => {
    const built = await robot.ask({ payload: robot.command(["cargo", "bench"]) });
    await dana.open("cargo bench");
    await dana.page.keyboard.down("a");
    for (let repeat = 0; repeat < 5; repeat += 1) await dana.page.keyboard.down("a");
    await dana.page.keyboard.up("a");
    await dana.page.getByText(/Press y to approve/).waitFor();
    // Too early, and then not at all: any other key goes back.
    await dana.page.keyboard.press("y");
    expect(await robot.isUndecided(built)).toBe(true);
    await dana.settle();
    await dana.page.keyboard.press("x");
    await dana.page.getByText(/Press y to approve/).waitFor({ state: "detached" });
    await dana.settle();
    await dana.page.keyboard.press("a");
    await dana.settle();
    await dana.page.keyboard.press("y");
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve", scope: "once" });
  });

  test("dangerous: everything opened, the lock, and a second's hold", async () => {
    await withLock(true);
    const content = "#!/bin/sh\nrm -rf build\n";
    const { createHash } = await import("node:crypto");
    const file = {
      path: "push.sh",
      role: "script",
      digest: createHash("sha256").update(content).digest("hex"),
      size: content.length,
      content,
    };
    const built = await robot.ask({
      payload: robot.command(["git", "push", "--force", "origin", "main"], { ...FORCE, files: [file] }),
    });
    await dana.open("git push --force origin main");
    await dana.shot("dangerous-closed");
    expect(await dana.page.getByRole("button", { name: /approve$/ }).textContent()).toBe("Open 1 more file to approve");
    await dana.press(/^Open 1 more file/);
    await dana.page.getByText("rm -rf build").waitFor();
    await dana.settle();
    await dana.shot("dangerous");
    await dana.page.getByRole("button", { name: /^Hold to approve/ }).click();
    await hold(600);
    await dana.page.waitForTimeout(300);
    expect(await robot.isUndecided(built)).toBe(true);
    await hold(1_150);
    const decision = await robot.decision(built);
    expect(decision).toMatchObject({ outcome: "approve", scope: "once" });
    expect(decision.words.shown).toMatch(/^1 of 1 files, .*, device unlocked$/);
    const { credentials } = await devtools.send("WebAuthn.getCredentials", { authenticatorId });
    expect(credentials).toHaveLength(1);
    expect(credentials[0]?.signCount).toBeGreaterThan(0);
  });

  test("dangerous: nothing is signed when the lock does not confirm", async () => {
    await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
    const built = await robot.ask({ payload: robot.command(["git", "push", "origin", ":main"], FORCE) });
    await dana.open("git push origin :main");
    await hold(1_150);
    await dana.page.getByText(/did not confirm you. Nothing was signed/).waitFor();
    expect(await robot.isUndecided(built)).toBe(true);
    await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: true });
    await dana.settle();
    // By the keyboard: held, and let go.
    await dana.page.getByRole("button", { name: /^Hold to approve/ }).focus();
    await dana.page.keyboard.down("Enter");
    await dana.page.waitForTimeout(1_200);
    await dana.page.keyboard.up("Enter");
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve" });
  });

  test("what is dangerous has no scope but once", async () => {
    const built = await robot.ask({
      payload: robot.command(["rm", "-r", "build"], { effects: [{ effect: "deletes", detail: "build" }] }),
      session: "s-1",
    });
    await dana.open("rm -r build");
    await dana.press("Scope: Once");
    expect(await dana.page.getByRole("radio").count()).toBe(1);
    await dana.press("Cancel");
    await dana.press("Reject");
    expect(await robot.decision(built)).toMatchObject({ outcome: "reject" });
  });

  test("nothing went wrong in the page", () => {
    expect(dana.problems).toEqual([]);
  });
});
