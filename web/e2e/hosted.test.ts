// The page on another origin than its gateway, as docs/page.md advises teams: joined, paired and used from there.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { openBrowser, Person } from "./browser.ts";
import { Host, policyFor } from "./host.ts";
import { Robot } from "./robot.ts";
import { type Machine, Stage } from "./stage.ts";

const host = new Host();
const stage = new Stage();
/** Another gateway, which does not list the page. */
const closed = new Stage();
let browser: Browser;
let dana: Person;
let vm: Machine;

beforeAll(async () => {
  await host.start();
  await stage.start(`allowed_origins = ["${host.url}"]`);
  await closed.start();
  host.policy = policyFor(stage.url);
  browser = await openBrowser();
  vm = await stage.machine("vm");
});
afterAll(async () => {
  await browser?.close();
  await stage.end();
  await closed.end();
  await host.stop();
});

/** Opens the page of the host and pastes an invitation there. */
async function paste(person: Person, link: string): Promise<void> {
  await person.page.goto(host.url);
  await person.press("Paste a link instead");
  await person.page.getByRole("textbox", { name: "Paste the invitation link" }).fill(link);
  await person.press("Continue");
  await person.page.getByRole("heading", { name: "Join this relay?" }).waitFor();
}

describe("a page on another origin than its gateway", () => {
  test("joins with a pasted invitation, and calls the gateway that it names", async () => {
    dana = await Person.open(browser, stage, {}, host.url);
    await paste(dana, stage.invite("approver", "dana"));
    await dana.page.getByText(stage.url).waitFor();
    await dana.press("Join");
    await dana.press("I have written it down");
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached" });
  });

  test("pairs by the link of the tool, pasted", async () => {
    const { link, running } = await vm.pair();
    await dana.page.goto(`${host.url}/#/pair`);
    await dana.page.getByRole("textbox", { name: "Pairing link or code" }).fill(link);
    await dana.press("Pair");
    await dana.page.getByRole("heading", { name: /^Connect to / }).waitFor();
    await dana.press("Connect");
    await dana.page.getByRole("heading", { name: "Paired" }).waitFor();
    expect(await running.ended).toBe(0);
    await dana.press("To the inbox");
  });

  test("approves a command over a WebSocket, and sees the receipt", async () => {
    const before = stage.front.upgrades;
    await dana.page.reload();
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached" });
    expect(stage.front.upgrades).toBeGreaterThan(before);
    const asked = vm.start("exec", "--", "touch", "hosted.txt");
    await dana.open("touch hosted.txt");
    await dana.answer(/^Approve/);
    await dana.page.getByText("Ran without an error").waitFor();
    expect(await asked.ended).toBe(0);
  });

  test("goes on over server-sent events where WebSockets don't pass", async () => {
    stage.front.hasSockets = false;
    await dana.page.reload();
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached", timeout: 20_000 });
    const asked = vm.start("exec", "--", "touch", "never.txt");
    await dana.open("touch never.txt");
    await dana.answer("Reject");
    expect(await asked.ended).toBe(81);
    stage.front.hasSockets = true;
  });

  test("takes links that have the address of the page in front: an invitation, and one for pairing", async () => {
    const robot = await Robot.join(stage, "build-1");
    const erin = await Person.open(browser, stage, {}, host.url);
    const link = stage.invite("approver", "erin");
    expect(erin.here(link)).toBe(`${host.url}/join#${link}`);
    await erin.join(link);
    expect(erin.page.url()).toBe(`${host.url}/#/`);
    await erin.pairWith(robot);
    const built = await robot.ask({ payload: robot.command(["make", "hosted"]) });
    await erin.open("make hosted");
    await erin.answer(/^Approve/);
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve" });
    expect([...erin.problems, ...erin.foreign]).toEqual([]);
    await erin.context.close();
  });

  test("a gateway that does not list it is left alone, with a sentence that says what to do", async () => {
    host.policy = policyFor(closed.url);
    const fay = await Person.open(browser, closed, {}, host.url);
    const link = closed.invite("approver", "fay");
    await paste(fay, link);
    await fay.press("Join");
    const sentence = await fay.page.locator(".problem").textContent();
    expect(sentence).toContain(`This gateway does not answer pages of ${host.url}.`);
    expect(sentence).toContain(`set allowed_origins = ["${host.url}"]`);
    expect(sentence).toContain("The invitation was not used.");
    await fay.shot("hosted-not-listed");
    // It was not: the page that this gateway serves takes it.
    const own = await Person.open(browser, closed);
    await own.join(link);
    await own.context.close();
    await fay.context.close();
  });

  test("a policy of the host that forbids the gateway is named, too", async () => {
    host.policy = policyFor(stage.url);
    const gus = await Person.open(browser, closed, {}, host.url);
    await paste(gus, closed.invite("approver", "gus"));
    await gus.press("Join");
    await gus.page.getByText("The policy of this page does not let it call the gateway.", { exact: false }).waitFor();
    await gus.page
      .getByText(`add ${closed.url} and ${closed.url.replace("http", "ws")} to connect-src`, { exact: false })
      .waitFor();
    await gus.context.close();
  });

  test("nothing went wrong in the page, and nothing came from elsewhere", () => {
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
