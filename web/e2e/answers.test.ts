// Every kind of answer, on a phone: words, scopes, actions, dangerous effects; and what is signed.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import type { Person } from "./browser.ts";
import { asked, choices, patch, type Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { until } from "./stage.ts";

const scene = new Scene();
let dana: Person;
let robot: Robot;

const payload = (members: object): string => JSON.stringify({ schema: "org.proto.payload", version: 2, ...members });
beforeAll(async () => {
  await scene.start();
  ({ dana, robot } = scene);
});
afterAll(() => scene.end());

describe("answers", () => {
  test("rejects with words that reach the machine", async () => {
    const built = await robot.ask({ payload: robot.command(["cargo", "publish"]) });
    await dana.open("cargo publish");
    await dana.press("Reject and say why");
    await dana.page.getByRole("textbox", { name: "Your words" }).fill("not on a Friday");
    await dana.shot("words");
    await dana.press("Reject and send");
    const decision = await robot.decision(built);
    expect(decision).toMatchObject({ outcome: "reject", words: { reason: "not on a Friday" } });
    await robot.report(built, decision, { outcome: "applied" });
    await dana.page.getByText("Stopped").waitFor();
  });

  test("signs how much was on the screen, and says what was not", async () => {
    const built = await robot.ask({ artifactType: "patch.review", payload: patch(7, 150) });
    await dana.open("src/auth/file0.ts");
    const approve = dana.page.getByRole("button", { name: /^Approve/ });
    expect(await approve.textContent()).toMatch(/7 of 7 files not opened/);
    // Every file can be jumped to, which opens it.
    const files = dana.page.getByRole("navigation", { name: "Files" }).getByRole("button");
    expect(await files.count()).toBe(7);
    await dana.tap(files.first());
    await until("one file is opened", async () => (await approve.textContent())?.includes("6 of 7 files not opened"));
    await dana.shot("review-patch");
    await dana.tap(approve);
    const { words } = await robot.decision(built);
    expect(words.shown).toMatch(/^1 of 7 files, \d+ of 1\d{3} lines, page 360×740$/);
  });

  test("shows a plan, a task and a checkpoint, all of it", async () => {
    const text =
      "# Fix the login\n\nThe session is *not* renewed. <img src=x onerror=alert(1)>\n\n```\nrm -rf /\n```\n- one\n";
    const plan = await robot.ask({
      artifactType: "plan.review",
      payload: payload({ text, steps: ["Write a test", "Renew"] }),
    });
    await dana.open("Fix the login");
    await dana.page.getByText("<img src=x onerror=alert(1)>").waitFor();
    await dana.shot("review-plan");
    await dana.press(/^Approve/);
    expect(await robot.decision(plan)).toMatchObject({ outcome: "approve", scope: "once" });
    const checkpoint = await robot.ask({
      artifactType: "checkpoint.review",
      payload: payload({ summary: "The test fails as expected", changes: ["Wrote a test"] }),
    });
    await dana.open("The test fails as expected");
    await dana.page.getByText("Wrote a test").waitFor();
    await dana.press("Reject");
    expect(await robot.decision(checkpoint)).toMatchObject({ outcome: "reject" });
  });

  test("shows a payload that it does not know as the JSON that it is", async () => {
    await robot.ask({ payload: JSON.stringify({ hello: "world\u202e" }) });
    await dana.open("command.review", "in a format that is not known here");
    await dana.page
      .getByText(/"hello":"world\\u202e"|hello/)
      .first()
      .waitFor();
    await dana.press("Reject");
    await dana.page.getByText(/The relay took it/).waitFor();
  });

  test("offers the machine's own buttons, and signs which was chosen", async () => {
    const actions = [
      { id: "blue", caption: "Use blue", style: "primary", decision: "approve" },
      { id: "green", caption: "Use green", style: "secondary", decision: "approve" },
    ] as const;
    const built = await robot.ask({
      artifactType: "checkpoint.review",
      payload: payload({ summary: "Which colour?", effects: [] }),
      actions,
    });
    await dana.open("Which colour?");
    // Nothing is chosen at first.
    expect(await dana.page.getByRole("button", { name: "Answer", exact: true }).isDisabled()).toBe(true);
    expect(await dana.page.getByRole("button", { name: "Don't answer" }).count()).toBe(1);
    await dana.page.getByRole("radio", { name: "Use green" }).check();
    await dana.shot("actions");
    await dana.press(/^Answer/);
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve", words: { action: "green" } });
  });

  test("asks a question once, with what each choice means; its answer is a name in every list", async () => {
    const options = [
      ["PostgreSQL", "A server of its own. Handles many writers."],
      ["SQLite", "One file, nothing to run. One writer at a time."],
    ] as const;
    const question = "Which database should the shop use?";
    const draft = {
      artifactType: "checkpoint.review",
      payload: asked(question, options),
      actions: choices("PostgreSQL", "SQLite"),
    } as const;
    const built = await robot.ask(draft);
    await dana.open(question);
    const review = dana.page.locator(".review");
    expect((await review.innerText()).split(question).length - 1).toBe(1);
    await dana.page.getByRole("radio", { name: "SQLite One file, nothing to run." }).waitFor();
    expect(await review.getByText("Also in this call").count()).toBe(0);
    expect(await dana.page.getByRole("radio", { checked: true }).count()).toBe(0);
    await dana.page.getByRole("radio", { name: /^SQLite/ }).check();
    await dana.shot("question");
    await dana.press(/^Answer\s*SQLite/);
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve", words: { action: "choice-2" } });
    await dana.page.getByText("You answered: SQLite").waitFor();
    const other = await robot.ask(draft);
    await dana.open(question);
    await dana.page.getByRole("radio", { name: /^Something else/ }).check();
    await dana.press(/^Answer/);
    await dana.page.getByRole("textbox", { name: "Your words" }).fill("Keep MySQL");
    await dana.press("Send answer");
    const { outcome, words } = await robot.decision(other);
    expect([outcome, words.action, words.reason]).toEqual(["approve", undefined, "Keep MySQL"]);
    await dana.page.getByRole("link", { name: /^Inbox/ }).click();
    await dana.page.getByRole("link", { name: "History" }).click();
    await dana.page.getByText("Answered: SQLite").waitFor();
    await dana.page.getByText("Answered: Keep MySQL").waitFor();
    expect(await dana.page.locator("body").innerText()).not.toMatch(/choice-\d/);
  });

  test("a question that nobody answers says so", async () => {
    const built = await robot.ask({
      artifactType: "checkpoint.review",
      payload: asked("Which port?", [["80", "Plain"]]),
      actions: choices("80"),
    });
    await dana.open("Which port?");
    await dana.press("Don't answer");
    expect(await robot.decision(built)).toMatchObject({ outcome: "reject" });
    await dana.page.getByText("You didn't answer").waitFor();
  });

  test("shows how the machine wants its buttons to look; one that approves something dangerous is held", async () => {
    const actions = [
      { id: "keep", caption: "Keep the data", style: "primary", decision: "approve" },
      { id: "copy", caption: "Copy the data", style: "secondary", decision: "approve" },
      { id: "wipe", caption: "Wipe the data", style: "danger", decision: "approve" },
      { id: "later", caption: "Not now", style: "secondary", decision: "reject" },
    ] as const;
    const built = await robot.ask({
      artifactType: "checkpoint.review",
      payload: payload({ summary: "What about the data?", effects: [] }),
      actions,
    });
    await dana.open("What about the data?");
    const look = (name: string): Promise<string> =>
      dana.page
        .getByRole("button", { name })
        .evaluate((button) => `${getComputedStyle(button).backgroundColor} ${getComputedStyle(button).color}`);
    const looks = await Promise.all(actions.map(({ caption }) => look(caption)));
    expect(new Set(looks).size).toBe(4);
    await dana.shot("styles");
    // A tap is not enough.
    await dana.tap(dana.page.getByRole("button", { name: "Hold to approve: Wipe the data" }));
    expect(await robot.isUndecided(built)).toBe(true);
    await dana.holdToApprove();
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve", words: { action: "wipe" } });
  });

  test("approves a pattern for an hour, and a session", async () => {
    const hour = await robot.ask({ payload: robot.command(["cargo", "test", "login"]) });
    await dana.open("cargo test login");
    await dana.press("Just this once");
    await dana.page.getByRole("radio", { name: /1 hour/ }).check();
    await dana.page.getByRole("button", { name: "login" }).click();
    await dana.page.getByText("every cargo test * in /home/robot/shop runs without asking", { exact: false }).waitFor();
    await dana.shot("scope");
    await dana.press("Use for 1 hour");
    await dana.press(/^Approve for 1 hour/);
    const decision = await robot.decision(hour);
    expect(decision).toMatchObject({ scope: "timebox", words: { pattern: { argv: ["cargo", "test", "*"] } } });
    const minutes = (decision.validUntil.millis - Date.now()) / 60_000;
    expect(minutes).toBeGreaterThan(58);
    expect(minutes).toBeLessThanOrEqual(60);
    const session = await robot.ask({ payload: robot.command(["cargo", "check"]), session: "s-1" });
    await dana.open("cargo check");
    await dana.press("Just this once");
    await dana.page.getByRole("radio", { name: /This task/ }).check();
    await dana.press("Use for this task");
    await dana.press(/^Approve for this task/);
    expect(await robot.decision(session)).toMatchObject({ scope: "session", session: "s-1" });
  });

  test("a receipt that somebody else signed is not believed", async () => {
    const built = await robot.ask({ payload: robot.command(["cargo", "doc"]) });
    await dana.open("cargo doc");
    await dana.press(/^Approve/);
    const decision = await robot.decision(built);
    const other = await robot.withNewKeys();
    await robot.report(built, decision, { outcome: "applied", exitStatus: 0 }, other.device.keys.signer);
    await dana.page.getByText(/Don't trust this: it isn't a valid receipt/).waitFor();
  });

  test("nothing went wrong in the page, and nothing came from elsewhere", () => {
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
