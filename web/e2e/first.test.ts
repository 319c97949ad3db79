// Joining, pairing, and the first answers: with the real tool at the other end.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { openBrowser, Person } from "./browser.ts";
import { type Machine, Stage } from "./stage.ts";

const stage = new Stage();
let browser: Browser;
let dana: Person;
let vm: Machine;

beforeAll(async () => {
  await stage.start();
  browser = await openBrowser();
  vm = await stage.machine("vm");
  dana = await Person.open(browser, stage);
});
afterAll(async () => {
  await browser?.close();
  await stage.end();
});

describe("from an invitation to an approved command", () => {
  test("joins with an invitation, and takes the link out of the address", async () => {
    const link = stage.invite("approver", "dana");
    await dana.page.goto(link);
    await dana.page.getByRole("heading", { name: "Join this gateway?" }).waitFor();
    expect(dana.page.url()).toBe(`${stage.url}/#/`);
    await dana.shot("join");
    await dana.press("Join");
    await dana.page.getByRole("heading", { name: "Your recovery code" }).waitFor();
    expect(await dana.page.locator(".recovery").textContent()).toMatch(/^[0-9A-HJKMNP-TV-Z]{28}$/);
    await dana.shot("recovery-code");
    await dana.press("I have written it down");
    await dana.page.getByText("This device is not paired with a machine yet.").first().waitFor();
  });

  test("pairs by the link of the tool", async () => {
    await dana.pairByLink(vm);
    expect(await vm.run(["devices", "list"])).toContain("dana");
    await dana.page.getByText("Nothing waits for you.").first().waitFor();
  });

  test("approves a command, which runs, and shows the verified receipt", async () => {
    const asked = vm.start("exec", "--", "touch", "done.txt");
    await dana.open("touch done.txt");
    await dana.shot("review-command");
    await dana.press(/^Approve/);
    await dana.page.getByText(/applied by the machine, exit status 0/).waitFor();
    expect(await asked.ended).toBe(0);
    expect(existsSync(join(vm.work, "done.txt"))).toBe(true);
    await dana.shot("timeline");
  });

  test("rejects with words, and the command does not run", async () => {
    const asked = vm.start("exec", "--", "touch", "never.txt");
    await dana.open("touch never.txt");
    await dana.press("Words…");
    await dana.page.getByRole("textbox", { name: "Words for the agent" }).fill("not on a Friday");
    await dana.shot("words");
    await dana.press("Reject with these words");
    await dana.page.getByText("stopped by the machine").waitFor();
    expect(await asked.ended).toBe(81);
    expect(asked.text()).toContain("not on a Friday");
    expect(existsSync(join(vm.work, "never.txt"))).toBe(false);
  });

  test("a dangerous command needs everything opened and a second's hold", async () => {
    mkdirSync(join(vm.work, "build"));
    const asked = vm.start("exec", "--", "rm", "-r", "build");
    await dana.open("rm -r build");
    await dana.page.locator(".effect-bar .chip.danger", { hasText: "deletes" }).first().waitFor();
    await dana.press(/^Open 1 more file/);
    const hold = dana.page.getByRole("button", { name: /^Hold to approve/ });
    await hold.waitFor();
    await dana.settle();
    await dana.shot("dangerous");
    await hold.hover();
    await dana.page.mouse.down();
    await dana.page.getByText("Let go to approve").waitFor();
    await dana.page.mouse.up();
    await dana.page.getByText(/applied by the machine, exit status 0/).waitFor();
    expect(await asked.ended).toBe(0);
    expect(existsSync(join(vm.work, "build"))).toBe(false);
  });

  test("taken back at the desk, the card leaves by itself", async () => {
    const asked = vm.start("exec", "--", "touch", "back.txt");
    await dana.page.getByRole("link", { name: /^Inbox/ }).click();
    await dana.card("touch back.txt");
    await dana.shot("inbox");
    asked.child.kill("SIGINT");
    expect(await asked.ended).toBe(130);
    await dana.page.getByText("Taken back by the machine").first().waitFor();
    await dana.shot("taken-back");
    await dana.page.locator(".card", { hasText: "touch back.txt" }).waitFor({ state: "detached" });
  });

  test("nothing went wrong in the page, and nothing came from elsewhere", () => {
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
