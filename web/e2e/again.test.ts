// After its time: a request is asked for again, and what has ended elsewhere leaves every device.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { axe } from "./axe.ts";
import { Person } from "./browser.ts";
import type { Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { until } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;
let dana: Person;
let robot: Robot;
let refreshes: string[];

beforeAll(async () => {
  await scene.start();
  ({ dana, robot } = scene);
  refreshes = await robot.refreshes();
});
afterAll(() => scene.end());

describe("a request that has expired", () => {
  test("is asked for again where it is open, and leads to the one that takes its place", async () => {
    const late = await robot.ask({ payload: robot.command(["make", "late"]) }, 8);
    await dana.open("make late");
    const bar = dana.page.locator(".answer-bar");
    await bar.getByText("Its time ran out.", { exact: false }).waitFor();
    expect(await dana.page.getByRole("button", { name: /^(Approve|Reject)/ }).count()).toBe(0);
    await dana.shot("ask-again");
    await dana.tap(bar.getByRole("button", { name: "Ask again" }));
    await bar.getByText("Asked again.").waitFor();
    expect(await bar.getByRole("button").count()).toBe(0);
    await until("the machine hears of it", () => refreshes.includes(late.requestId));
    await dana.shot("asked-again");
    expect(await axe(dana)).toEqual([]);
    const next = await robot.ask({ payload: robot.command(["make", "late"]), supersedes: late.requestId });
    await dana.tap(bar.getByRole("link", { name: "Replaced by a newer request" }));
    await dana.page.locator(".effect-bar", { hasText: "Replaces a request without an answer" }).waitFor();
    await dana.shot("replaces");
    expect(await axe(dana)).toEqual([]);
    await dana.answer(/^Approve/);
    expect(await robot.decision(next)).toMatchObject({ outcome: "approve" });
    expect(await robot.isUndecided(late)).toBe(true);
  });

  test("says so among those that have expired, where others are asked for, also after a restart", async () => {
    const missed = await robot.ask({ payload: robot.command(["make", "missed"]) }, 3);
    await dana.page.getByRole("link", { name: /^Inbox/ }).click();
    const inList = dana.page.locator(".list li", { hasText: "make missed" });
    await inList.getByRole("button", { name: "Ask again" }).waitFor();
    await dana.page.goto(`${stage.url}/#/expired`);
    const card = (text: string) => dana.page.locator(".pane li", { hasText: text });
    await card("make late").getByRole("link", { name: "Replaced by a newer request" }).waitFor();
    await dana.shot("expired");
    expect(await axe(dana)).toEqual([]);
    await dana.tap(card("make missed").getByRole("button", { name: "Ask again" }));
    await card("make missed").getByText("Asked again.").waitFor();
    await until("the machine hears of it", () => refreshes.includes(missed.requestId));
    await dana.page.reload();
    await card("make missed").getByText("Asked again.").waitFor();
  });

  test("before the answer arrived says that it was too late, and can be asked for again", async () => {
    const built = await robot.ask({ payload: robot.command(["make", "slow"]) }, 8);
    await dana.open("make slow");
    // The answer is signed in time, and is long on its way.
    await dana.page.route("**/v1/decisions", async (route) => {
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, built.expiresAt.millis - Date.now()) + 1_000));
      await route.continue();
    });
    await dana.answer(/^Approve/);
    await dana.page.getByText("Too late: it expired before your answer arrived.", { exact: false }).waitFor();
    await dana.page.unroute("**/v1/decisions");
    await dana.shot("too-late");
    expect(await robot.isUndecided(built)).toBe(true);
    await dana.press("Ask again");
    await dana.page.getByText("Asked again.").waitFor();
    await until("the machine hears of it", () => refreshes.includes(built.requestId));
  });
});

describe("a request that has ended on another device", () => {
  test("leaves the list, and says so where it is open, without being asked about", async () => {
    const phone = await Person.open(scene.browser, stage);
    await phone.join(stage.invite("approver", "dana"));
    await phone.pairWith(robot);
    await dana.page.goto(`${stage.url}/#/`);
    const listed = await robot.ask({ payload: robot.command(["make", "listed"]) });
    const card = await dana.card("make listed");
    await phone.open("make listed");
    // Nobody learns by reading how an exchange stands: only a message can say it.
    stage.front.tamper = (path, body) => (/^\/v1\/exchanges\/[^/]*$/.test(path) ? "{}" : body);
    await phone.press(/^Approve/);
    await card.waitFor({ state: "detached", timeout: 10_000 });
    expect(await robot.decision(listed)).toMatchObject({ outcome: "approve" });
    const open = await robot.ask({ payload: robot.command(["make", "open"]) });
    await phone.open("make open");
    await dana.open("make open");
    await phone.press("Reject");
    await dana.page.locator(".answer-bar", { hasText: "Answered on another device" }).waitFor({ timeout: 10_000 });
    expect(await dana.page.getByRole("button", { name: /^(Approve|Reject)/ }).count()).toBe(0);
    expect(await robot.decision(open)).toMatchObject({ outcome: "reject" });
    stage.front.tamper = undefined;
    expect(phone.problems).toEqual([]);
    await phone.context.close();
  });
});

test("nothing went wrong in the page, and nothing came from elsewhere", () => {
  expect(dana.problems).toEqual([]);
  expect(dana.foreign).toEqual([]);
});
