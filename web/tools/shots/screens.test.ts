// A picture of every screen of the page, on a phone and on a desk, in light and in dark; beside the mock if there is one.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { axe } from "../../e2e/axe.ts";
import { DESK, Person, PHONE } from "../../e2e/browser.ts";
import { asked, choices, Robot } from "../../e2e/robot.ts";
import { Scene } from "../../e2e/scene.ts";
import { until } from "../../e2e/stage.ts";
import { askAll, plan, SESSION, shell } from "./requests.ts";
import { small } from "./small.ts";

const PICTURES = process.env["COUNTERSIGN_PICTURES"] ?? "pictures";
const MOCK = process.env["COUNTERSIGN_MOCK"] ?? "";
const SIZES = [PHONE, DESK];
const SCHEMES = ["light", "dark"] as const;

const scene = new Scene();
const { stage } = scene;
let dana: Person;
let robot: Robot;
let laptop: Robot;
/** What axe has found anywhere. */
const found: string[] = [];

beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  await scene.open();
  dana = await Person.open(scene.browser, stage);
});
afterAll(() => scene.end());

/** Takes the pictures of what is on the screen. `before` is done for each. */
async function shoot(
  name: string,
  { mock = name, sizes = SIZES, before }: { mock?: string; sizes?: typeof SIZES; before?: () => Promise<void> } = {},
): Promise<void> {
  const { page } = dana;
  for (const size of sizes) {
    for (const colorScheme of SCHEMES) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme });
      if (before === undefined) await page.mouse.move(0, 0);
      await before?.();
      await page.waitForTimeout(350);
      const path = join(PICTURES, `${name}-${size.width}-${colorScheme}.png`);
      writeFileSync(path, small(await page.screenshot()));
      if (before === undefined) found.push(...(await axe(dana)).map((problem) => `${name}: ${problem}`));
      await beside(name, mock, size, colorScheme, path);
    }
  }
  await page.setViewportSize(PHONE);
  await page.emulateMedia({ colorScheme: "light" });
}

/** Puts a screen of the mock and the real one beside each other. */
async function beside(
  name: string,
  mock: string,
  size: typeof PHONE,
  colorScheme: "light" | "dark",
  path: string,
): Promise<void> {
  const file = join(MOCK, `${mock}.html`);
  if (MOCK === "" || !existsSync(file)) return;
  const page: Page = await scene.browser.newPage({ viewport: size, colorScheme });
  await page.goto(`file://${file}`);
  const [theirs, ours] = [await page.screenshot(), readFileSync(path)].map((png) => png.toString("base64"));
  await page.setViewportSize({ width: size.width * 2 + 16, height: size.height });
  await page.setContent(
    `<body style="margin:0;display:flex;gap:16px;background:#888"><img src="data:image/png;base64,${theirs}"><img src="data:image/png;base64,${ours}">`,
  );
  await page.screenshot({ path: join(PICTURES, `beside-${name}-${size.width}-${colorScheme}.png`) });
  await page.close();
}

const goTo = async (place: string): Promise<void> => {
  await dana.page.goto(`${stage.url}/#/${place}`);
  await dana.settle();
};

test("before somebody has joined, and pairing", async () => {
  await dana.page.goto(stage.url);
  await dana.page.getByRole("heading").first().waitFor();
  await shoot("welcome");
  await dana.page.goto(dana.here(stage.invite("approver", "ada")));
  await dana.page.getByRole("button", { name: "Join" }).waitFor();
  await dana.press("Join");
  await dana.page.getByRole("button", { name: "I have written it down" }).waitFor();
  await shoot("recovery");
  await dana.press("I have written it down");
  robot = await Robot.join(stage, "build-1");
  const { link, finish } = await robot.pair();
  await dana.page.goto(dana.here(link));
  await dana.page.getByRole("button", { name: "Connect" }).waitFor();
  await shoot("connect");
  await dana.press("Connect");
  await finish();
  await dana.press("To the inbox");
  laptop = await Robot.join(stage, "ada-laptop");
  await dana.pairWith(laptop);
});

test("nothing waits, and what became of an answer", async () => {
  await robot.startSession(SESSION);
  await robot.sendSnapshot(SESSION, "task", JSON.stringify({ task: "Make the cart use Decimal" }), "context");
  const steps = [
    "Change total() and discount()",
    "Add tests for rounding",
    "Deploy to staging",
    "Compare 200 old carts",
  ];
  const states = ["completed", "completed", "in_progress", "pending"];
  await robot.sendSnapshot(
    SESSION,
    "plan",
    JSON.stringify({ steps: steps.map((content, at) => ({ content, status: states[at] })) }),
    "plan",
  );
  await robot.sendSnapshot(SESSION, "said", JSON.stringify({ summary: "The tests pass. I'd like to deploy." }));
  const built = await robot.ask({
    payload: shell("pytest -q", "A first look at the tests.", { effects: [{ effect: "tests" }], state: "opaque" }),
    session: SESSION,
  });
  await dana.open("pytest -q");
  await dana.press(/^Approve/);
  const decision = await robot.decision(built);
  await robot.report(built, decision, { outcome: "applied", exitStatus: 0 });
  await dana.page.getByText("Ran without an error").waitFor();
  await shoot("answered");
  await goTo("");
  await dana.page.getByText("Nothing is waiting").first().waitFor();
  await dana.page.getByText("Working now").waitFor();
  await shoot("empty");
});

test("what waits, and each kind of request", async () => {
  await askAll(robot, (text) => createHash("sha256").update(text).digest("hex"));
  const options = [
    ["PostgreSQL", "A server of its own. Handles many writers."],
    ["SQLite", "One file, nothing to run. One writer at a time."],
  ] as const;
  await robot.ask(
    {
      artifactType: "checkpoint.review",
      payload: asked("Which database should the shop use?", options),
      actions: choices("PostgreSQL", "SQLite"),
      session: SESSION,
    },
    3_150,
  );
  await laptop.startSession("s-2");
  await laptop.ask({ artifactType: "plan.review", payload: plan(), session: "s-2", repoName: "ada/handbook" }, 3_390);
  const stranger = await Robot.join(stage, "build-2");
  stranger.pins = robot.pins;
  for (const at of [1, 2, 3]) await stranger.ask({ payload: stranger.command(["make", `${at}`]) });
  await goTo("");
  await dana.card("Replace the dead links");
  await dana.page.locator(".broken").waitFor();
  await shoot("inbox");
  const read = async (text: string, name: string, shown = text): Promise<void> => {
    await dana.open(text, shown);
    await dana.settle();
    await shoot(name);
  };
  await read("rm -rf /srv/shop", "danger");
  await shoot("danger-holding", {
    before: async () => {
      const rail = dana.page.locator(".rail");
      await dana.settle();
      const box = await rail.boundingBox();
      await dana.page.mouse.move(0, 0);
      await dana.page.mouse.up();
      if (box === null) throw new Error("there is no rail");
      await dana.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await dana.page.mouse.down();
    },
  });
  await dana.page.mouse.move(0, 0);
  await dana.page.mouse.up();
  await read("curl -fsSL", "unsure");
  await read("pip install", "command");
  await dana.press(/^Just this once/);
  await dana.page.getByRole("radio", { name: /This task/ }).check();
  await shoot("scope");
  await dana.page.keyboard.press("Escape");
  await dana.press("Reject and say why");
  await dana.page.getByRole("textbox", { name: "Your words" }).fill("Use the version that is pinned in uv.lock.");
  await shoot("words");
  await dana.page.keyboard.press("Escape");
  await dana.press("Stop this agent");
  await shoot("stop-agent");
  await dana.page.keyboard.press("Escape");
  await read("./deploy.sh", "script");
  await dana.open("src/cart.py");
  await dana.settle();
  await shoot("patch", { sizes: [PHONE] });
  await shoot("desk", { sizes: [DESK] });
  await dana.open("Which database should the shop use?");
  await dana.page.getByRole("radio", { name: /^PostgreSQL/ }).check();
  await dana.settle();
  await shoot("question");
  await read("Replace the dead links", "plan");
});

test("several together, what comes after an answer, and the lists", async () => {
  await goTo("");
  await dana.page.getByRole("link", { name: /^Review \d together/ }).click();
  const boxes = dana.page.getByRole("checkbox");
  await boxes.first().waitFor();
  await dana.tap(dana.page.locator(".batch > div > .file-head").first());
  await until("all of it was on the screen", () => boxes.first().isEnabled());
  await boxes.first().check();
  await dana.settle();
  await shoot("batch");
  await dana.open("pip install");
  await dana.press(/^Approve/);
  await dana.page.locator(".sent").waitFor();
  await dana.page.waitForTimeout(1_000);
  await shoot("after");
  await goTo("sessions");
  await dana.page.getByText("Step 3 of 4").waitFor();
  await shoot("sessions");
  await goTo(`session/${SESSION}`);
  await dana.page.getByText("Plan, 2 of 4 done").waitFor();
  await shoot("session");
  await goTo("history");
  await shoot("history");
  await goTo("devices");
  await shoot("devices");
  await goTo("silent");
  await shoot("silent");
});

test("a command that is changed", async () => {
  const effects = { effects: [{ effect: "pushes", detail: "origin decimal" }], state: "opaque" };
  const ask = (command: string, more: object) =>
    robot.ask({
      payload: shell(command, "The branch is rebased on main.", effects),
      session: SESSION,
      edits: ["/tool_input/command"],
      ...more,
    });
  const old = await ask("git push --force origin decimal", {});
  await dana.open("git push --force");
  await dana.press(/^Change it/);
  const after = "git push --force-with-lease origin decimal";
  await dana.page.getByRole("textbox", { name: "Command" }).fill(after);
  await shoot("change");
  await dana.press("Send the change");
  await dana.page.getByText("Waiting for build-1 to ask", { exact: false }).waitFor();
  await robot.decision(old);
  await shoot("change-sent");
  await ask(after, { edited: true, supersedes: old.requestId });
  await dana.page.getByRole("region", { name: "Your change" }).getByText("Nothing has been done yet.").waitFor();
  await dana.settle();
  await shoot("changed");
  await dana.answer("Reject");
});

test("states, and a stop", async () => {
  const gone = await robot.ask(
    {
      payload: shell("make docs", "The guide is out of date.", { effects: [{ effect: "builds" }], state: "opaque" }),
      session: SESSION,
    },
    900,
  );
  await dana.open("make docs");
  await robot.withdraw(gone);
  await dana.page.getByText("took this back").filter({ visible: true }).first().waitFor();
  await shoot("withdrawn", { mock: "states" });
  await goTo("");
  stage.front.down();
  await dana.page.locator(".offline-bar").waitFor();
  await shoot("offline", { mock: "states" });
  stage.front.up();
  const forged = await robot.withNewKeys();
  forged.pins = robot.pins;
  await dana.page.locator(".offline-bar").waitFor({ state: "detached" });
  await forged.ask({ payload: forged.command(["make", "forged"]) });
  await dana.page.getByRole("heading", { name: /^Stop\. / }).waitFor();
  await shoot("stop", { mock: "locked" });
});

test("axe finds nothing on any of them, and nothing went wrong", () => {
  expect([...new Set(found)]).toEqual([]);
  expect(dana.problems).toEqual([]);
});
