// What Lighthouse says of the page's screens, on a phone and on a desk: accessibility and best practices.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import lighthouse from "lighthouse";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { CHROMIUM, CHROMIUM_ARGS, DESK, Person, PHONE, watchTaps } from "../../e2e/browser.ts";
import { asked, choices, Robot } from "../../e2e/robot.ts";
import { freePort, Stage } from "../../e2e/stage.ts";
import { texts } from "../../src/texts.ts";

const LEAST = 95;
const CATEGORIES = ["accessibility", "best-practices"];
const FORMS = [
  ["phone", "mobile", PHONE],
  ["desk", "desktop", DESK],
];

const stage = new Stage();
const profile = mkdtempSync(join(tmpdir(), "countersign-lighthouse-"));
const rows = [];
let context;
let port;
let dana;
let robot;

beforeAll(async () => {
  await stage.start();
  port = await freePort();
  // Lighthouse opens tabs of its own in this browser. They share its storage, so they are the same device.
  context = await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    headless: true,
    viewport: PHONE,
    args: [...CHROMIUM_ARGS, `--remote-debugging-port=${port}`],
  });
  await context.addInitScript(watchTaps);
  dana = new Person(context, context.pages()[0] ?? (await context.newPage()), stage.url, stage.url);
});

afterAll(async () => {
  const cells = [["screen", "size", ...CATEGORIES], ...rows];
  const widths = cells[0].map((_, column) => Math.max(...cells.map((row) => String(row[column]).length)));
  const line = (row) => row.map((cell, column) => String(cell).padEnd(widths[column])).join("  ");
  process.stdout.write(`\n${cells.map(line).join("\n")}\n`);
  await context?.close();
  await stage.end();
  rmSync(profile, { recursive: true, force: true });
});

/** Waits until the next tab that is opened shows this text: a screen that says something else was not measured. */
async function isShown(text) {
  const tab = await context.waitForEvent("page");
  await tab.getByText(text).first().waitFor({ timeout: 60_000 });
}

/** The scores of an address, as rows; prints what was found, and fails below the goal. */
async function measure(screen, url, text) {
  const faults = [];
  for (const [size, formFactor, { width, height }] of FORMS) {
    const shown = isShown(text);
    const measured = lighthouse(url, {
      port,
      logLevel: "error",
      onlyCategories: CATEGORIES,
      formFactor,
      screenEmulation: { mobile: formFactor === "mobile", width, height, deviceScaleFactor: 1, disabled: false },
      // Speed is measured elsewhere.
      throttlingMethod: "provided",
      disableStorageReset: true,
      disableFullPageScreenshot: true,
      maxWaitForLoad: 15_000,
    });
    const [result] = await Promise.all([measured, shown]);
    if (result === undefined) throw new Error(`${screen}: there is no result`);
    const { categories, audits, runtimeError } = result.lhr;
    if (runtimeError !== undefined) throw new Error(`${screen}: ${runtimeError.message}`);
    const scores = CATEGORIES.map((name) => Math.round((categories[name].score ?? 0) * 100));
    rows.push([screen, size, ...scores]);
    CATEGORIES.forEach((name, index) => {
      const failed = categories[name].auditRefs
        .filter(({ id, weight }) => weight > 0 && audits[id].score !== null && audits[id].score < 1)
        .map(({ id }) => `${id} ${JSON.stringify(audits[id].details?.items?.slice(0, 3) ?? []).slice(0, 400)}`);
      if (failed.length > 0) process.stdout.write(`${screen}, ${size}: ${failed.join("; ")}\n`);
      if (scores[index] < LEAST) faults.push(`${screen}, ${size}: ${name} ${scores[index]}`);
    });
  }
  expect(faults).toEqual([]);
}

test("before somebody has joined", async () => {
  await measure("start", `${stage.url}/`, texts.pasteInstead);
  await measure("join", stage.invite("approver", "ada"), texts.joinTitle);
});

test("with requests that wait", async () => {
  robot = await Robot.join(stage, "build-1");
  await dana.join(stage.invite("approver", "dana"));
  const { link, finish } = await robot.pair();
  await dana.page.goto(link);
  await dana.press("Connect");
  await finish();
  await dana.press("To the inbox");
  const effects = [{ effect: "network", detail: "example.org" }];
  await robot.ask({ payload: robot.command(["cargo", "test", "--workspace"]) }, 900);
  await robot.ask({ payload: robot.command(["git", "push", "origin", "main"], { effects }) }, 900);
  await dana.card("cargo test --workspace");
  await measure("inbox", `${stage.url}/#/`, "cargo test --workspace");
  await dana.open("git push origin main");
  await measure("review", dana.page.url(), /^Approve/);
  const options = [
    ["PostgreSQL", "Handles many writers."],
    ["SQLite", "One file."],
  ];
  await robot.ask(
    {
      artifactType: "checkpoint.review",
      payload: asked("Which database?", options),
      actions: choices("PostgreSQL", "SQLite"),
    },
    900,
  );
  await dana.open("Which database?");
  await measure("question", dana.page.url(), "Choose one");
  await robot.startSession("s-1");
  await robot.sendSnapshot("s-1", "one", JSON.stringify({ summary: "The tests pass." }));
  await measure("session", `${stage.url}/#/session/s-1`, "The tests pass.");
});

test.each([
  // CONTRIBUTING: add a screen, step 5
  ["history", texts.historyEmpty],
  ["devices", texts.machines],
  ["sessions", texts.promptTitle],
  ["pair", texts.pairTitle],
  ["recover", texts.recoverTitle],
])("%s", async (place, text) => {
  await measure(place, `${stage.url}/#/${place}`, text);
});
