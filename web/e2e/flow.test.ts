// From one request to the next: after an answer, several together, and what a tab says while nobody looks.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { axe } from "./axe.ts";
import type { Person } from "./browser.ts";
import { patch, type Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { until } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;
let dana: Person;
let robot: Robot;

const DELETES = { effects: [{ effect: "deletes", detail: "build" }] };

beforeAll(async () => {
  await scene.start();
  ({ dana, robot } = scene);
});
afterAll(() => scene.end());

describe("after an answer", () => {
  test("the next request comes by itself and takes no answer at first; a dangerous one waits to be opened", async () => {
    const first = await robot.ask({ payload: robot.command(["make", "first"]) }, 300);
    const second = await robot.ask({ payload: robot.command(["make", "second"]) }, 400);
    const danger = await robot.ask({ payload: robot.command(["rm", "-r", "build"], DELETES) }, 500);
    await dana.card("rm -r build");
    await dana.open("make first");
    await dana.settle();
    const approve = dana.page.getByRole("button", { name: /^Approve/ });
    const box = await approve.boundingBox();
    if (box === null) throw new Error("there is no button");
    await dana.tap(approve);
    await dana.page.locator(".sent", { hasText: "make first" }).waitFor();
    // The finger is still there.
    await dana.page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    await dana.page.waitForTimeout(300);
    await dana.shot("after");
    expect(await robot.decision(first)).toMatchObject({ outcome: "approve" });
    expect(await robot.isUndecided(second)).toBe(true);
    expect(await dana.page.locator(".exact .line.shell").allTextContents()).toEqual(["make second"]);
    await dana.page.waitForTimeout(900);
    expect(await axe(dana)).toEqual([]);
    await dana.tap(approve);
    expect(await robot.decision(second)).toMatchObject({ outcome: "approve" });
    // What is dangerous is named, and is not opened.
    const next = dana.page.getByRole("link", { name: /Next: a dangerous request/ });
    await next.waitFor();
    await dana.page.locator(".timeline").waitFor();
    expect(await dana.page.locator(".exact .line.shell").allTextContents()).toEqual(["make second"]);
    await dana.shot("next-waits");
    await next.click();
    await dana.page.locator(".effect-bar.harm").waitFor();
    await dana.answer("Reject");
    expect(await robot.decision(danger)).toMatchObject({ outcome: "reject" });
  });

  test("what was answered before can be followed", async () => {
    const first = await robot.ask({ payload: robot.command(["make", "followed"]) }, 300);
    const second = await robot.ask({ payload: robot.command(["make", "other"]) }, 400);
    await dana.page.goto(`${stage.url}/#/`);
    await dana.card("make other");
    await dana.open("make followed");
    await dana.answer(/^Approve/);
    await dana.page.getByRole("link", { name: "Follow" }).click();
    await dana.page.locator(".timeline", { hasText: "The relay took it" }).waitFor();
    expect(await robot.decision(first)).toMatchObject({ outcome: "approve" });
    await robot.withdraw(second);
  });
});

describe("several together", () => {
  test("each is opened, ticked and signed by itself; what needs care is left out, and what comes later", async () => {
    const session = "s-together";
    const [one, two] = [
      await robot.ask({ payload: robot.command(["make", "one"]), session }, 300),
      await robot.ask({ payload: robot.command(["make", "two"]), session }, 310),
    ];
    const change = await robot.ask({ artifactType: "patch.review", payload: patch(2, 2), session }, 320);
    const danger = await robot.ask({ payload: robot.command(["rm", "-r", "build"], DELETES), session }, 330);
    await dana.page.goto(`${stage.url}/#/`);
    await dana.card("rm -r build");
    await dana.settle();
    await dana.page.getByRole("link", { name: "Review 3 together" }).click();
    const boxes = dana.page.getByRole("checkbox");
    await boxes.first().waitFor();
    expect(await boxes.count()).toBe(3);
    for (const box of await boxes.all()) expect(await box.isDisabled()).toBe(true);
    expect(await dana.page.getByRole("button", { name: /^Approve/ }).isDisabled()).toBe(true);
    await dana.page.getByText("Left out: 1 dangerous. Each needs its own answer.").waitFor();
    await dana.page.getByRole("heading", { name: "Runs 2 commands, and changes 2 files +4 −0" }).waitFor();
    const late = await robot.ask({ payload: robot.command(["make", "late"]), session }, 315);
    for (const [at, name] of [
      [0, /make one/],
      [2, /file0\.ts|2 files/],
    ] as const) {
      await dana.tap(dana.page.locator(".batch > div > .file-head", { hasText: name }).first());
      await until("all of it was on the screen", async () => {
        await dana.page.mouse.wheel(0, 120);
        return boxes.nth(at).isEnabled();
      });
      await boxes.nth(at).check();
    }
    await dana.shot("batch");
    expect(await axe(dana)).toEqual([]);
    expect(await boxes.count()).toBe(3);
    await dana.press(/^Approve 2/);
    for (const built of [one, change])
      expect(await robot.decision(built)).toMatchObject({ outcome: "approve", scope: "once" });
    for (const built of [two, danger, late]) {
      expect(await robot.isUndecided(built)).toBe(true);
      await robot.withdraw(built);
    }
  });

  test("rejecting them asks for words once, and each answer has them", async () => {
    const session = "s-rejected";
    const asked = [
      await robot.ask({ payload: robot.command(["make", "three"]), session }, 300),
      await robot.ask({ payload: robot.command(["make", "four"]), session }, 310),
    ];
    await dana.page.goto(`${stage.url}/#/`);
    await dana.card("make four");
    await dana.settle();
    await dana.page.getByRole("link", { name: "Review 2 together" }).click();
    await dana.press("Reject and say why");
    await dana.page.getByRole("textbox", { name: "Your words" }).fill("Not on a Friday");
    await dana.press("Reject and send");
    const decisions = await Promise.all(asked.map((built) => robot.decision(built)));
    for (const decision of decisions)
      expect(decision).toMatchObject({ outcome: "reject", words: { reason: "Not on a Friday" } });
    expect(new Set(decisions.map(({ nonce }) => nonce)).size).toBe(2);
    await dana.page.getByRole("heading", { name: "Nothing is waiting" }).waitFor();
  });
});

describe("a tab that nobody looks at", () => {
  test("has the number of requests in its title", async () => {
    await dana.page.goto(`${stage.url}/#/`);
    await until("the title", async () => (await dana.page.title()) === "Countersign");
    const built = await robot.ask({ payload: robot.command(["make", "titled"]) });
    await until("the title", async () => (await dana.page.title()) === "(1) Countersign");
    await robot.withdraw(built);
    await until("the title", async () => (await dana.page.title()) === "Countersign");
  });

  test("notifies while it is hidden that something waits, until it is settled", async () => {
    await dana.page.evaluate(() => {
      const notices: object[] = [];
      class Notice {
        static readonly permission = "granted";
        readonly title: string;
        readonly body: string;
        isClosed = false;
        constructor(title: string, options: NotificationOptions) {
          [this.title, this.body] = [title, options.body ?? ""];
          notices.push(this);
        }
        close(): void {
          this.isClosed = true;
        }
      }
      Object.assign(window, { Notification: Notice, notices });
      Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
    });
    const notices = () =>
      dana.page.evaluate(() =>
        (window as unknown as { notices: { title: string; body: string; isClosed: boolean }[] }).notices.map(
          ({ title, body, isClosed }) => `${title}: ${body}${isClosed ? ", closed" : ""}`,
        ),
      );
    const who = { agent: "Claude Code", project: "shop" };
    const built = await robot.ask({ payload: robot.command(["make", "noticed"], who) });
    await until("a notification", async () => (await notices()).length > 0);
    expect(await notices()).toEqual(["Countersign: A request is waiting."]);
    await robot.withdraw(built);
    await until("it is closed", async () => (await notices())[0] === "Countersign: A request is waiting., closed");
    expect((await notices()).length).toBe(1);
    await dana.page.reload();
  });

  test("nothing went wrong in the page", () => {
    expect(dana.problems).toEqual([]);
  });
});
