// A call that is changed before it is approved: written on the phone, asked anew by the machine, and approved as it was written.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { applyEdit, JsonObject, parseObject } from "../src/protocol/index.ts";
import type { BuiltRequest } from "../src/protocol/request.ts";
import { axe } from "./axe.ts";
import { DESK, type Person, PHONE } from "./browser.ts";
import type { Robot } from "./robot.ts";
import { Scene } from "./scene.ts";

const scene = new Scene();
let dana: Person;
let robot: Robot;

beforeAll(async () => {
  await scene.start();
  ({ dana, robot } = scene);
});
afterAll(() => scene.end());
// What one test leaves behind is not before the next one.
beforeEach(() => dana.page.goto(`${scene.stage.url}/#/`));

const COMMAND = "/tool_input/command";

/** A command as the hook of Claude Code asks for it. */
function bash(command: string, more: object = {}): string {
  return JSON.stringify({
    schema: "org.proto.payload",
    version: 2,
    state: "examined",
    shell: command,
    cwd: "/home/robot/shop",
    effects: [],
    agent: "Claude Code",
    project: "shop",
    task: "Tidy up the branches",
    call: {
      kind: "hook.claude",
      moment: "PreToolUse",
      tool: "Bash",
      folder: "/home/robot/shop",
      message: { tool_name: "Bash", tool_input: { command } },
      shown: ["/tool_name", COMMAND],
    },
    ...more,
  });
}

/** The call of a request as an edit makes it. */
function changed({ artifact }: BuiltRequest, edit: Readonly<Record<string, string>>): string {
  const { payload } = JSON.parse(artifact) as { payload: object };
  const call = parseObject(JSON.stringify(payload)).members.get("call");
  const message = call instanceof JsonObject ? call.members.get("message") : undefined;
  if (!(message instanceof JsonObject)) throw new Error("there is no message");
  const place = { source: COMMAND, tokens: ["tool_input", "command"] };
  const { command } = (JSON.parse(message.source) as { tool_input: { command: string } }).tool_input;
  return applyEdit(message, [{ place, text: command, isWords: false }], edit).source;
}

const field = (label = "Command") => dana.page.getByRole("textbox", { name: label });
const bar = () => dana.page.locator(".answer-bar");
const send = () => dana.page.getByRole("button", { name: "Send the change" });

/** Takes a picture of the screen at both sizes, in light and in dark. */
async function shots(name: string): Promise<void> {
  const folder = process.env["COUNTERSIGN_SHOTS"];
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  for (const [width, size] of [
    [360, PHONE],
    [1440, DESK],
  ] as const) {
    await dana.page.setViewportSize(size);
    for (const colorScheme of ["light", "dark"] as const) {
      await dana.page.emulateMedia({ colorScheme });
      await dana.page.waitForTimeout(150);
      await dana.page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`) });
    }
  }
  await dana.page.emulateMedia({ colorScheme: null });
  await dana.page.setViewportSize(PHONE);
}

/** Asks for a command that may be changed, and opens it. */
async function ask(command: string, more: object = {}): Promise<BuiltRequest> {
  const built = await robot.ask({ payload: bash(command, more), edits: [COMMAND] });
  // A row has room for so much only.
  await dana.open(command.slice(0, 60));
  return built;
}

describe("a command", () => {
  test("is changed, asked for anew in its place, and approved exactly as it was written", async () => {
    const before = "git push --force origin main";
    const after = 'git push --force-with-lease origin "main"';
    const old = await ask(before);
    await dana.settle();
    await shots("change-before");
    await dana.press(/^Change it/);
    expect(await field().inputValue()).toBe(before);
    for (const [name, value] of [
      ["autocapitalize", "off"],
      ["autocorrect", "off"],
      ["spellcheck", "false"],
    ] as const)
      expect(await field().getAttribute(name)).toBe(value);
    await dana.page.getByText("Nothing is changed yet.").waitFor();
    expect(await send().isDisabled()).toBe(true);
    await field().fill(" ");
    await dana.page.getByText("A command can't be empty.").waitFor();
    await field().fill(after);
    // Escape keeps what was written, and gives the focus back.
    await dana.page.keyboard.press("Escape");
    await field().waitFor({ state: "detached" });
    expect(await dana.page.evaluate(() => document.activeElement?.textContent)).toContain("Change it");
    await dana.press(/^Change it/);
    expect(await field().inputValue()).toBe(after);
    expect(await axe(dana)).toEqual([]);
    await shots("change-editor");
    await dana.press("Send the change");
    const decision = await robot.decision(old);
    expect(decision).toMatchObject({ outcome: "reject", scope: "once", words: { edit: { [COMMAND]: after } } });
    await bar().getByText("You changed it. Waiting for build-1 to ask about the changed call.").waitFor();
    await dana.page.getByText("You changed this").waitFor();
    expect(await dana.page.getByText("You rejected this").count()).toBe(0);
    expect(await axe(dana)).toEqual([]);
    await shots("change-sent");
    await robot.report(old, decision, { outcome: "applied" });
    await bar().getByText("The original was not run").waitFor();
    // The machine makes the changed call of it, and asks again.
    const message = JSON.parse(changed(old, decision.words.edit ?? {})) as { tool_input: { command: string } };
    const next = await robot.ask({
      payload: bash(message.tool_input.command),
      edits: [COMMAND],
      edited: true,
      supersedes: old.requestId,
    });
    const yours = dana.page.getByRole("region", { name: "Your change" });
    await yours.getByText("Nothing has been done yet.", { exact: false }).waitFor();
    expect(new URL(dana.page.url()).hash).toBe(`#/request/${next.requestId}`);
    expect(await yours.locator(".removed .content").allTextContents()).toEqual([before]);
    expect(await yours.locator(".added .content").allTextContents()).toEqual([after]);
    expect(await yours.locator("ins").count()).toBeGreaterThan(0);
    expect(await dana.page.evaluate(() => document.activeElement?.tagName)).toBe("H1");
    await bar().getByText("Only this once").waitFor();
    expect(await bar().getByText("Just this once").count()).toBe(0);
    expect(await dana.page.getByRole("button", { name: /^Change it/ }).count()).toBe(1);
    expect(await axe(dana)).toEqual([]);
    await shots("change-asked");
    await dana.answer(/^Approve/);
    expect(await robot.decision(next)).toMatchObject({ outcome: "approve", scope: "once", words: {} });
    const approved = parseObject(next.artifact).members.get("payload");
    expect(approved instanceof JsonObject && JSON.parse(approved.source)).toMatchObject({
      shell: after,
      call: { message: { tool_input: { command: after } } },
    });
    // The first answer is a change, and no rejection.
    await dana.tab("History");
    const row = dana.page.locator(".pane .row", { hasText: "Changed:" });
    expect(await row.textContent()).toContain(`Changed: ${after}`);
    await shots("change-history");
    await dana.press("Rejected");
    await row.waitFor({ state: "detached" });
    await dana.press("All");
    await dana.tap(row);
    await bar().or(dana.page.locator(".change-state")).getByText("has asked about the changed call").waitFor();
    await dana.page.reload();
    await dana.page.locator(".change-state").getByText("has asked about the changed call").waitFor();
    await dana.page.getByText(after).first().waitFor();
    expect(await axe(dana)).toEqual([]);
  });

  test("that a rule denies after it was changed was not run", async () => {
    const old = await ask("rm -rf build", { effects: [{ effect: "deletes", detail: "build/" }] });
    await dana.page.getByRole("button", { name: /^Change it/ }).waitFor();
    await dana.page.waitForTimeout(650);
    await dana.page.keyboard.press("e");
    await field().fill("rm -rf /");
    await dana.press("Send the change");
    const decision = await robot.decision(old);
    await robot.report(old, decision, { outcome: "refused", reason: "the rule `deny rm -rf /` denies it" });
    await bar().getByText("build-1 did not take your change. Nothing was run.").waitFor();
    await bar().getByText("denies it", { exact: false }).waitFor();
    expect(await axe(dana)).toEqual([]);
    await shots("change-denied");
  });

  test("that the machine does not ask about again was not run, which is said after a while", async () => {
    const old = await ask("make deploy");
    await dana.press(/^Change it/);
    await field().fill("make deploy-staging");
    await dana.press("Send the change");
    expect((await robot.decision(old)).words.edit).toEqual({ [COMMAND]: "make deploy-staging" });
    await bar().getByText("Waiting for build-1 to ask", { exact: false }).waitFor();
    await bar()
      .getByText("build-1 hasn't asked again. Nothing was run.", { exact: false })
      .waitFor({ timeout: 25_000 });
    // It may be late, and then it opens in place as well; here it is another text than was sent.
    await robot.ask({ payload: bash("make deploy"), edited: true, supersedes: old.requestId });
    await dana.page.getByText("This isn't the text you sent", { exact: false }).waitFor();
    await shots("change-other");
    await dana.answer("Reject");
  });

  test("with characters that mislead says so, and is sent exactly", async () => {
    const before = "echo \u202efoo\ttab";
    const built = await robot.ask({ payload: bash(before), edits: [COMMAND] });
    await dana.open("echo ⟨U+202E⟩foo");
    await dana.press(/^Change it/);
    expect(await field().inputValue()).toBe(before);
    await dana.page.locator(".marks", { hasText: "echo ⟨U+202E⟩foo⟨⇥⟩tab" }).waitFor();
    expect(await axe(dana)).toEqual([]);
    await shots("change-marks");
    await field().fill(`${before}\n\u200b'quoted'`);
    await dana.press("Send the change");
    expect((await robot.decision(built)).words.edit).toEqual({ [COMMAND]: `${before}\n\u200b'quoted'` });
  });

  test("that can't be changed is rejected with another one", async () => {
    const built = await robot.ask({ payload: robot.command(["make", "a b"]) });
    await dana.open("make 'a b'");
    expect(await dana.page.getByRole("button", { name: /^Change it/ }).count()).toBe(0);
    await dana.press(/^Reject and say why/);
    await shots("suggest-words");
    await dana.press("Suggest another command");
    expect(await field().inputValue()).toBe("make 'a b'");
    await field().fill("make check");
    await shots("suggest");
    expect(await axe(dana)).toEqual([]);
    await dana.answer("Reject and send");
    expect(await robot.decision(built)).toMatchObject({
      outcome: "reject",
      words: { reason: "Run this instead:\nmake check" },
    });
  });
});

describe("a file", () => {
  const content = (lines: number, ending = "\n"): string =>
    Array.from({ length: lines }, (_, at) => `export const value${at} = ${at};${ending}`).join("");
  function write(text: string): string {
    const lines = text.split("\n").length - 1;
    const added = text
      .replace(/\n$/, "")
      .split("\n")
      .map((line) => `+${line}`);
    return JSON.stringify({
      schema: "org.proto.payload",
      version: 2,
      diff: `--- /dev/null\n+++ b/src/values.ts\n@@ -0,0 +1,${lines} @@\n${added.join("\n")}\n`,
      files: [{ path: "src/values.ts", status: "added", added: lines, removed: 0, resultDigest: "0".repeat(64) }],
      effects: [],
      agent: "Claude Code",
      call: {
        kind: "hook.claude",
        moment: "PreToolUse",
        tool: "Write",
        folder: "/home/robot/shop",
        message: { tool_name: "Write", tool_input: { file_path: "src/values.ts", content: text } },
        shown: ["/tool_name", "/tool_input/file_path", "/tool_input/content"],
      },
    });
  }
  const edits = ["/tool_input/content"];

  test("keeps its line breaks, and only the lines that differ are shown", async () => {
    const text = content(40, "\r\n");
    const old = await robot.ask({ artifactType: "patch.review", payload: write(text), edits });
    await dana.open("src/values.ts");
    await dana.press(/^Change it/);
    const shown = field("New content of the file");
    expect(await shown.inputValue()).toBe(text.replaceAll("\r\n", "\n"));
    await shots("change-file");
    const after = text.replace("value3 = 3", "value3 = 33").replace("export const value30 = 30;\r\n", "");
    await shown.fill(after.replaceAll("\r\n", "\n"));
    await dana.press("Send the change");
    expect((await robot.decision(old)).words.edit).toEqual({ "/tool_input/content": after });
    await robot.ask({
      artifactType: "patch.review",
      payload: write(after),
      edits,
      edited: true,
      supersedes: old.requestId,
    });
    const yours = dana.page.getByRole("region", { name: "Your change" });
    await yours.waitFor();
    expect(await yours.locator(".removed").count()).toBe(2);
    expect(await yours.locator(".added").count()).toBe(1);
    await shots("change-file-asked");
    await dana.answer("Reject");
  });

  test("that is too long can't be sent", async () => {
    await robot.ask({ artifactType: "patch.review", payload: write(content(2_000)), edits });
    await dana.open("src/values.ts");
    await dana.press(/^Change it/);
    await field("New content of the file").press("End");
    await field("New content of the file").pressSequentially("x");
    await dana.page.getByText(/^Too long to send: [\d,]+ bytes, at most 32,768\.$/).waitFor();
    expect(await send().isDisabled()).toBe(true);
    await shots("change-long");
    await dana.page.keyboard.press("Escape");
    await dana.answer("Reject");
  });
});

test("the editor has room beside the keyboard of a phone", async () => {
  await ask(`echo ${"a long command with many words ".repeat(12)}`);
  await dana.press(/^Change it/);
  await field().focus();
  // The keyboard takes half of the screen.
  await dana.page.setViewportSize({ width: 360, height: 380 });
  await dana.page.waitForTimeout(300);
  const boxes = await Promise.all(
    [field(), send(), dana.page.getByRole("button", { name: "Cancel" })].map((one) => one.boundingBox()),
  );
  const [area, button, cancel] = boxes;
  if (!area || !button || !cancel) throw new Error("something is not drawn");
  expect(button.y + button.height).toBeLessThanOrEqual(380);
  expect(cancel.y).toBeGreaterThanOrEqual(area.y + 60);
  expect(button.x + button.width).toBeLessThanOrEqual(360);
  expect(await dana.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  if (process.env["COUNTERSIGN_SHOTS"] !== undefined) await dana.shot("change-keyboard");
  await dana.page.setViewportSize(PHONE);
  await dana.page.keyboard.press("Escape");
  await dana.answer("Reject");
});

test("nothing went wrong in the page, and nothing came from elsewhere", () => {
  expect(dana.problems).toEqual([]);
  expect(dana.foreign).toEqual([]);
});
