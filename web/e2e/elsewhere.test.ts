// Two devices of one person: what one of them answers while the other is off is in the history of both.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { DESK, Person } from "./browser.ts";
import { Scene } from "./scene.ts";
import type { Machine } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;
let phone: Person;
let desk: Person;
let vm: Machine;

beforeAll(async () => {
  await scene.open();
  vm = await stage.machine("vm");
  phone = await Person.open(scene.browser, stage);
  desk = await Person.open(scene.browser, stage, { viewport: DESK });
  for (const device of [phone, desk]) {
    await device.join(stage.invite("approver", "dana"));
    await device.pairByLink(vm);
  }
});
afterAll(() => scene.end());

const open = async (device: Person): Promise<void> => {
  await device.page.goto(`${stage.url}/#/`);
  await device.page.getByRole("link", { name: /^Inbox/ }).waitFor();
};

describe("what another device of the same person has answered", () => {
  test("while this one was off, is in the history of both", async () => {
    await phone.page.goto("about:blank");
    const first = vm.start("exec", "--", "touch", "from-the-desk.txt");
    await desk.open("touch from-the-desk.txt");
    await desk.press(/^Approve/);
    await desk.page.getByText("Ran without an error").waitFor();
    expect(await first.ended).toBe(0);
    await desk.page.goto("about:blank");
    await open(phone);
    const second = vm.start("exec", "--", "touch", "from-the-phone.txt");
    await phone.open("touch from-the-phone.txt");
    await phone.press("Reject and say why");
    await phone.page.getByRole("textbox", { name: "Your words" }).fill("after lunch");
    await phone.press("Reject and send");
    expect(await second.ended).toBe(81);
    await open(desk);
    for (const device of [phone, desk]) {
      await device.tab("History");
      for (const file of ["from-the-desk.txt", "from-the-phone.txt"])
        await device.page.locator(".row", { hasText: file }).waitFor();
      expect(await device.page.locator(".rows .row").count()).toBe(2);
      expect(await device.page.locator(".row", { hasText: "on another device" }).count()).toBe(1);
    }
    await phone.page
      .locator("div.row", { hasText: "Approved on another device · vm · Ran without an error" })
      .waitFor();
    await desk.page.locator("div.row", { hasText: "Rejected on another device · vm" }).waitFor();
    await desk.page.locator("div.row", { hasText: "“after lunch”" }).waitFor();
    await phone.shot("history-elsewhere");
    await desk.shot("history-elsewhere-desk");
  });

  test("is no session of an agent, and a machine that is not trusted any more says nothing", async () => {
    await phone.tab("Sessions");
    await phone.page.getByText("No agent is working for you yet.").waitFor();
    await phone.page.goto(`${stage.url}/#/devices`);
    const card = await phone.openFold("vm");
    await card.getByRole("button", { name: "Stop trusting this machine" }).click();
    await phone.tap(card.getByRole("button", { name: "Stop trusting it" }));
    await card.getByText("not trusted since").waitFor();
    await phone.tab("History");
    await phone.page.locator(".row", { hasText: "from-the-phone.txt" }).waitFor();
    expect(await phone.page.locator(".row", { hasText: "from-the-desk.txt" }).count()).toBe(0);
    expect(phone.problems.concat(desk.problems)).toEqual([]);
  });
});
