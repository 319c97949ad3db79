// Joining, pairing, and the first answers: with the real tool at the other end.

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
    await dana.shot("timeline");
  });

  test("nothing went wrong in the page, and nothing came from elsewhere", () => {
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
