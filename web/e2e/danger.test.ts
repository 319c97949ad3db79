// What must never approve: a tap on a fresh screen, a double tap, a key that is held, a stale view; and what is dangerous
// without the lock of the device and a second's hold.

import type { CDPSession } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BuiltRequest } from "../src/protocol/request.ts";
import { DESK, FRESH, type Person, PHONE } from "./browser.ts";
import { patch, type Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { until } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;
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
  await scene.start();
  ({ dana, robot } = scene);
  devtools = await dana.context.newCDPSession(dana.page);
  await devtools.send("WebAuthn.enable");
});
afterAll(() => scene.end());

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

/** On a busy machine a quick press comes late, and shows nothing then. So it is tried until it was quick enough. */
async function quickly(attempt: (round: number) => Promise<boolean>): Promise<void> {
  for (let round = 0; round < 8; round += 1) if (await attempt(round)) return;
  throw new Error("this machine is too slow to press as quickly as a person");
}

/** Less than the half second for which a new screen ignores presses: from its appearance on, by the clock of the page. */
const QUICK = 450;
/** Less than the second for which a button is held. */
const SHORT = 900;
/** A test that presses quickly is repeated until it was quick enough. */
const PATIENT = { timeout: 240_000 };

describe("nothing is approved by accident", () => {
  test(
    "a tap and keys in the first half second, and Enter on a screen that nobody touched, do nothing",
    PATIENT,
    async () => {
      const approve = dana.page.getByRole("button", { name: /^Approve/ });
      const first = await robot.ask({ payload: robot.command(["cargo", "test"]) });
      await dana.open("cargo test");
      const box = await approve.boundingBox();
      if (box === null) throw new Error("there is no button");
      await robot.withdraw(first);
      let built = first;
      const presses = [
        () => dana.page.mouse.click(box.x + box.width / 2, box.y + box.height / 2),
        () => dana.page.keyboard.press("Enter").then(() => dana.page.keyboard.press("y")),
        () => dana.page.keyboard.press("a").then(() => dana.page.keyboard.press("y")),
      ];
      for (const [kind, press] of presses.entries()) {
        await quickly(async (round) => {
          await dana.page.goto(`${stage.url}/#/`);
          built = await robot.ask({ payload: robot.command(["cargo", "test", `${kind}-${round}`]) });
          const card = await dana.card(`cargo test ${kind}-${round}`);
          await dana.settle();
          await dana.watchPresses(".answer-bar .approve");
          await dana.tap(card);
          await approve.waitFor();
          await press();
          const [appeared, ...late] = await dana.pressed("appears", kind === 0 ? "click" : "y");
          if (late.every((at) => at - Number(appeared) < QUICK)) return true;
          await robot.withdraw(built).catch(() => undefined);
          return false;
        });
        await dana.page.waitForTimeout(200);
        expect(await robot.isUndecided(built)).toBe(true);
        if (kind < presses.length - 1) await robot.withdraw(built);
      }
      // The keys were ignored too early to ask for a confirmation.
      expect(await dana.page.getByText(/Press y to approve/).count()).toBe(0);
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
      await dana.page.locator(".answer-bar", { hasText: "took this back." }).waitFor();
    },
  );

  test("keys: a then y approves, a key that is held does not", PATIENT, async () => {
    const confirm = dana.page.getByText(/Press y to approve/);
    let built: BuiltRequest | undefined;
    await quickly(async (round) => {
      built = await robot.ask({ payload: robot.command(["cargo", "bench", `${round}`]) });
      await dana.open(`cargo bench ${round}`);
      await dana.settle();
      await dana.watchPresses(".confirm");
      for (let repeat = 0; repeat < 3; repeat += 1) await dana.page.keyboard.down("a");
      // Too early.
      await dana.page.keyboard.press("y");
      await dana.page.keyboard.up("a");
      const [asked, early] = await dana.pressed("appears", "y");
      return Number(early) - Number(asked) < QUICK;
    });
    if (built === undefined) throw new Error("nothing was asked");
    await confirm.waitFor();
    expect(await robot.isUndecided(built)).toBe(true);
    await dana.settle();
    // Any other key goes back.
    await dana.page.keyboard.press("x");
    await confirm.waitFor({ state: "detached" });
    await dana.settle();
    await dana.page.keyboard.press("a");
    await confirm.waitFor();
    await dana.settle();
    await dana.page.keyboard.press("y");
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve", scope: "once" });
  });

  test("dangerous: everything opened, the lock, and a second's hold", PATIENT, async () => {
    await withLock(true);
    // It is too long to be unfolded.
    const content = `#!/bin/sh\n${"make step\n".repeat(41)}rm -rf build\n`;
    const { createHash } = await import("node:crypto");
    const file = {
      path: "push.sh",
      role: "script",
      digest: createHash("sha256").update(content).digest("hex"),
      size: content.length,
      content,
    };
    let built: BuiltRequest | undefined;
    await quickly(async (round) => {
      const argv = ["git", "push", "--force", "origin", round === 0 ? "main" : `main${round}`];
      const asked = await robot.ask({ payload: robot.command(argv, { ...FORCE, files: [file] }) });
      built = asked;
      await dana.open(argv.join(" "));
      await dana.shot("dangerous-closed");
      const blocked = dana.page.getByRole("button", { name: /approve$/ });
      expect(await blocked.textContent()).toBe("Open 1 more filethen you can approve");
      await dana.press(/^Open 1 more file/);
      await until("all of it was on the screen", async () => {
        await dana.page.mouse.wheel(0, 150);
        return dana.page.getByRole("button", { name: /^Hold to approve/ }).isVisible();
      });
      await dana.page.getByText("rm -rf build").waitFor();
      await dana.settle();
      await dana.shot("dangerous");
      for (const delay of [0, 300]) {
        await dana.page.getByRole("button", { name: /^Hold to approve/ }).click({ delay });
        if ((await dana.heldFor()) < SHORT) continue;
        await robot.withdraw(asked).catch(() => undefined);
        return false;
      }
      await dana.page.waitForTimeout(300);
      expect(await robot.isUndecided(asked)).toBe(true);
      return true;
    });
    if (built === undefined) throw new Error("nothing was asked");
    await dana.holdToApprove();
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
    await dana.holdToApprove();
    await dana.page.getByText(/didn't confirm it was you. Nothing was signed/).waitFor();
    expect(await robot.isUndecided(built)).toBe(true);
    await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: true });
    await dana.settle();
    // By the keyboard: held, and let go.
    await dana.page.getByRole("button", { name: /^Hold to approve/ }).focus();
    await dana.page.keyboard.down("Enter");
    await dana.page.getByText("Let go to approve").waitFor();
    await dana.page.keyboard.up("Enter");
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve" });
  });

  test("what is dangerous has no scope but once", async () => {
    const built = await robot.ask({
      payload: robot.command(["rm", "-r", "build"], { effects: [{ effect: "deletes", detail: "build" }] }),
      session: "s-1",
    });
    await dana.open("rm -r build");
    expect(await dana.page.getByRole("button", { name: "Just this once" }).count()).toBe(0);
    await dana.settle();
    await dana.page.keyboard.press("s");
    await dana.page.getByRole("radio").waitFor();
    expect(await dana.page.getByRole("radio").count()).toBe(1);
    await dana.press("Cancel");
    await dana.press("Reject");
    expect(await robot.decision(built)).toMatchObject({ outcome: "reject" });
  });

  test.each([PHONE, DESK])(
    "what comes and goes in the list takes no tap from the open request: %o",
    async (viewport) => {
      await dana.page.setViewportSize(viewport);
      const built = await robot.ask({ artifactType: "patch.review", payload: patch(2, 1) });
      await dana.open("src/auth/file0.ts");
      const head = dana.page.locator(".file-head").first();
      await dana.settle();
      const end = Date.now() + 7_000;
      const other = await robot.ask({ payload: robot.command(["make", "other"]) });
      const going = robot.withdraw(other);
      // It is taken back, says so for five seconds, and leaves.
      while (Date.now() < end) {
        await head.click();
        expect(await dana.page.evaluate(() => window.wasTapIgnored)).toBe(false);
      }
      await going;
      await dana.answer(/^Approve/);
      expect(await robot.decision(built)).toMatchObject({ outcome: "approve" });
      await dana.page.setViewportSize(PHONE);
    },
  );

  test("a card does not take a tap that was meant for its neighbour", PATIENT, async () => {
    await quickly(async (round) => {
      const [first, second] = await Promise.all(
        [100, 200].map((seconds) => robot.ask({ payload: robot.command(["make", `${round}-${seconds}`]) }, seconds)),
      );
      if (first === undefined || second === undefined) throw new Error("nothing was asked");
      await dana.page.getByRole("link", { name: /^Inbox/ }).click();
      await dana.card(`make ${round}-100`);
      const card = await dana.card(`make ${round}-200`);
      await dana.settle();
      await dana.watchPresses(".row.ended");
      // It says that it was taken back, which moves the other one.
      await robot.withdraw(first);
      await dana.page.locator(".row.ended", { hasText: `make ${round}-100` }).waitFor();
      await card.click();
      const [moved, clicked] = await dana.pressed("appears", "click");
      const isQuick = Number(clicked) - Number(moved) < QUICK;
      if (isQuick) expect(await dana.page.evaluate(() => window.wasTapIgnored)).toBe(true);
      await robot.withdraw(second);
      return isQuick;
    });
  });

  test("nothing went wrong in the page", () => {
    expect(dana.problems).toEqual([]);
  });
});
