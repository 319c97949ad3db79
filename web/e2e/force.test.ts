// The pictures of the README: `git push --force` waits for a person, says what it does, and pushes nothing without an approval.

import { execFileSync } from "node:child_process";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { Person, PHONE } from "./browser.ts";
import { Scene } from "./scene.ts";
import type { Machine } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;
let ada: Person;
let laptop: Machine;

const git = (...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", ...args], {
    cwd: laptop.work,
    env: laptop.env,
    encoding: "utf8",
  });

beforeAll(async () => {
  await scene.open();
  laptop = await stage.machine("laptop");
  const origin = join(laptop.home, "acme", "shop.git");
  git("init", "--quiet", "--bare", origin);
  git("init", "--quiet", "--initial-branch=main");
  git("remote", "add", "origin", origin);
  git("commit", "--quiet", "--allow-empty", "--message=Sell things");
  git("push", "--quiet", "origin", "main");
  git("commit", "--quiet", "--amend", "--allow-empty", "--message=Sell better things");
  // As wide as a README, sharp on any screen.
  const viewport = { width: 1040, height: 560 };
  ada = await Person.open(scene.browser, stage, { viewport, deviceScaleFactor: 1.5, colorScheme: "light" });
  await ada.join(stage.invite("approver", "ada"));
  await ada.pairByLink(laptop);
});
afterAll(() => scene.end());

test("git push --force says what it does, and a rejected one changes nothing", async () => {
  const before = git("ls-remote", "origin");
  const tests = laptop.start("exec", "--", "npm", "test");
  const push = laptop.start("exec", "--", "git", "push", "--force", "origin", "main");
  await ada.card("npm test");
  await ada.open("git push --force origin main");
  await ada.page.locator(".effects .harm", { hasText: "history" }).first().waitFor();
  await ada.page.getByRole("button", { name: /^Hold to approve/ }).waitFor();
  await ada.page.locator(".effect-bar h1").hover();
  await ada.page.mouse.wheel(0, -10_000);
  await ada.settle();
  await ada.shot("force-push");
  await ada.page.setViewportSize(PHONE);
  for (const colorScheme of ["light", "dark"] as const) {
    await ada.page.emulateMedia({ colorScheme });
    await ada.settle();
    await ada.shot(`force-push-phone-${colorScheme}`);
  }
  await ada.answer("Reject");
  expect(await push.ended).toBe(81);
  expect(git("ls-remote", "origin")).toBe(before);
  tests.child.kill("SIGINT");
  expect(await tests.ended).toBe(130);
  expect(ada.problems).toEqual([]);
});
