// Devices, vouchers, sessions, prompts, proofs, and a long diff.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { DESK, Person, PHONE } from "./browser.ts";
import { Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { type Machine, until } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;
let dana: Person;
let robot: Robot;
let vm: Machine;

beforeAll(async () => {
  await scene.start();
  ({ dana, robot } = scene);
  vm = await stage.machine("vm");
  await dana.pairByLink(vm);
});
afterAll(() => scene.end());

describe("people", () => {
  test("the proof that is saved is one that the tool verifies", async () => {
    const asked = vm.start("exec", "--", "true");
    await dana.open("true");
    await dana.press(/^Approve/);
    await dana.page.getByText("Ran without an error").waitFor();
    expect(await asked.ended).toBe(0);
    const download = dana.page.waitForEvent("download");
    await dana.press("Save the proof");
    const path = join(vm.home, "proof.json");
    writeFileSync(path, readFileSync(await (await download).path()));
    const said = await vm.run(["verify", path]);
    expect(said).toMatch(/signed/i);
    const { artifact, words } = JSON.parse(readFileSync(path, "utf8")) as { artifact: string; words: object };
    expect(artifact).toContain('"argv":["true"]');
    expect(words).toHaveProperty("shown");
  });

  test("the tool's plan and checkpoint are answered, and its questions", async () => {
    writeFileSync(join(vm.work, "plan.md"), "# Move the shop\n\n1. stop it\n2. move it\n");
    const plan = vm.start("ask", "--plan", "plan.md");
    await dana.open("Move the shop");
    await dana.press("Ask for changes");
    await dana.page.getByRole("textbox", { name: "Your words" }).fill("after lunch");
    await dana.press("Reject and send");
    expect(await plan.ended).toBe(81);
    expect(plan.text()).toContain("after lunch");
    const checkpoint = vm.start("ask", "--checkpoint", "The tests pass");
    await dana.open("The tests pass");
    await dana.press(/^Approve/);
    expect(await checkpoint.ended).toBe(0);
  });

  test("words reach the agent's machine", async () => {
    const listening = vm.start("listen", "--json");
    await dana.tab("Sessions");
    await dana.page.getByRole("combobox", { name: "Machine" }).selectOption("vm");
    await dana.page.getByRole("textbox", { name: "Message to the agent" }).fill("use the other branch");
    await dana.press("Send");
    await until("the words", () => listening.text().includes("use the other branch"));
    await dana.page.getByText("the agent has it, says the relay", { exact: false }).waitFor();
    listening.child.kill("SIGTERM");
    // What was sent is still there when the page is opened again.
    await dana.page.reload();
    const kept = dana.page.locator(".prompts li", { hasText: "use the other branch" });
    await kept.filter({ hasText: "vm: the agent has it, says the relay" }).waitFor();
    expect(await dana.page.locator(".prompts li").count()).toBe(1);
  });

  /** Events of a session of Claude Code on the machine: it has started; `ask` is a call that waits for its answer. */
  const agent = async (session: string): Promise<{ ask: (command: string) => Promise<string> }> => {
    const event = (name: string, more: object = {}): string =>
      JSON.stringify({ hook_event_name: name, session_id: session, cwd: vm.work, ...more });
    const home = ["--home", join(vm.home, "data", "countersign")];
    await vm.run(["hook", "claude", ...home], event("SessionStart"));
    const ask = (command: string): Promise<string> => {
      const call = { tool_name: "Bash", tool_input: { command }, tool_use_id: "toolu_1" };
      return vm.run(["hook", "claude", "--mode", "gate", ...home], event("PreToolUse", call));
    };
    return { ask };
  };

  test("an agent is stopped from its session, and the hook refuses what it asks from then on", async () => {
    const { ask } = await agent("s-stop");
    const asking = ask("touch stopped.txt");
    await dana.open("touch stopped.txt");
    await dana.page.goto(`${stage.url}/#/session/s-stop`);
    await dana.press("Stop this agent");
    await dana.page.getByText("There is no way back").waitFor();
    await dana.page.getByRole("textbox", { name: "Why" }).fill("wrong branch");
    await dana.shot("stop-agent");
    await dana.press("Stop it");
    expect(await asking).toContain("wrong branch");
    await dana.page.getByText("You stopped").waitFor();
    const again = await ask("touch stopped.txt");
    expect(again).toContain('"deny"');
    expect(again).toContain("stopped this agent");
  });

  test("an agent is stopped from a request: the hook refuses that one too, and takes it back", async () => {
    const { ask } = await agent("s-stop-here");
    const asking = ask("touch here.txt");
    await dana.open("touch here.txt");
    const sheet = dana.page.getByRole("dialog", { name: "Stop this agent?" });
    await dana.press("Stop this agent");
    await sheet.getByText("This request is refused too").waitFor();
    // Keys that answer are for what is behind the sheet, and Escape is for the sheet.
    await dana.settle();
    for (const key of ["r", "R", "s", "Escape"]) await dana.page.keyboard.press(key);
    await sheet.waitFor({ state: "detached" });
    expect(await dana.page.getByRole("dialog").count()).toBe(0);
    await dana.page.getByRole("button", { name: /^Approve/ }).waitFor();
    await dana.press("Stop this agent");
    await dana.page.getByRole("textbox", { name: "Why" }).fill("not here");
    // A device that is turned, so that there is room for columns, keeps what was typed.
    await dana.page.setViewportSize(DESK);
    await dana.page.locator(".beside").waitFor();
    expect(await dana.page.getByRole("textbox", { name: "Why" }).inputValue()).toBe("not here");
    await dana.page.setViewportSize(PHONE);
    await dana.shot("stop-agent-request");
    await dana.press("Stop it");
    const denied = await asking;
    expect(denied).toContain('"deny"');
    expect(denied).toContain("stopped this agent: “not here”");
    const bar = dana.page.locator(".answer-bar");
    await bar.getByText("You stopped this agent. vm took this back. Nothing to answer.").waitFor();
    await dana.page.locator(".notice", { hasText: "You stopped this agent." }).waitFor();
    expect(await dana.page.getByRole("button", { name: "Stop this agent" }).count()).toBe(0);
    await dana.shot("stop-agent-request-done");
    expect(await ask("true")).toContain("stopped this agent");
    // It was taken back, and not answered.
    await dana.page.getByRole("link", { name: /^Inbox/ }).click();
    await dana.tab("History");
    expect(await dana.page.getByText("touch here.txt").count()).toBe(0);
  });

  test("until its machine has heard of the stop, a request can be rejected and no longer approved", async () => {
    const session = "s-deaf";
    await robot.startSession(session);
    const built = await robot.ask({ payload: robot.command(["make", "deaf"]), session });
    const other = await robot.ask({ payload: robot.command(["make", "other"]), session: "s-other" });
    await dana.page.setViewportSize(DESK);
    await dana.open("make deaf");
    await dana.page.locator(".beside").getByRole("button", { name: "Stop this agent" }).waitFor();
    await dana.press("Stop this agent");
    await dana.press("Stop it");
    await dana.page.getByText("Waiting for build-1 to pick it up.").waitFor();
    const bar = dana.page.locator(".answer-bar");
    await bar.getByText("Waiting for build-1 to take this back.").waitFor();
    expect(await dana.page.getByRole("button", { name: /^Approve/ }).count()).toBe(0);
    await dana.settle();
    for (const key of ["a", "y"]) await dana.page.keyboard.press(key);
    expect(await robot.isUndecided(built)).toBe(true);
    await dana.shot("stop-agent-waits");
    await dana.tap(bar.getByRole("button", { name: "Reject" }));
    expect((await robot.decision(built)).outcome).toBe("reject");
    // Another session of the same machine goes on.
    await dana.open("make other");
    await dana.page.getByRole("button", { name: /^Approve/ }).waitFor();
    await dana.press("Reject");
    await robot.decision(other);
    await dana.page.setViewportSize(PHONE);
  });

  test("an agent that names no session can't be stopped, and its request says so", async () => {
    const message = { tool_name: "Bash", tool_input: { command: "make nameless" } };
    const shown = ["/tool_name", "/tool_input/command"];
    const call = {
      kind: "hook.claude",
      moment: "PreToolUse",
      tool: "Bash",
      folder: "/home/robot/shop",
      message,
      shown,
    };
    const { argv: _, ...rest } = JSON.parse(robot.command([])) as { argv: unknown };
    const built = await robot.ask({ payload: JSON.stringify({ ...rest, shell: "make nameless", call }) });
    await dana.open("make nameless");
    await dana.page.getByText("so it can't be stopped from here").waitFor();
    expect(await dana.page.getByRole("button", { name: "Stop this agent" }).count()).toBe(0);
    await dana.press("Reject");
    await robot.decision(built);
    // What no agent's host asks for has nothing to stop.
    const asked = vm.start("exec", "--", "echo", "nobody");
    await dana.open("echo nobody");
    expect(await dana.page.getByText(/stopped from here|Stop this agent/).count()).toBe(0);
    await dana.press("Reject");
    expect(await asked.ended).toBe(81);
  });

  test("a session shows its task, plan, last words and answers, and has no id for a name", async () => {
    const session = "9f3c2d1e-1111-4222-8333-abcdefabcdef";
    await robot.startSession(session);
    const steps = [
      { content: "Change total()", status: "completed" },
      { content: "Deploy\u202e to staging", status: "in_progress" },
      { content: "Open a pull request", status: "pending" },
    ];
    await robot.sendSnapshot(session, "one", JSON.stringify({ summary: "Writing a test\u202e" }));
    await robot.sendSnapshot(session, "two", JSON.stringify({ task: "Make the cart use Decimal" }), "context");
    await robot.sendSnapshot(session, "three", JSON.stringify({ steps }), "plan");
    const built = await robot.ask({ payload: robot.command(["make", "plan"]), session });
    await dana.open("make plan");
    await dana.press("Reject and say why");
    await dana.page.getByRole("textbox", { name: "Your words" }).fill("Not on a Friday");
    await dana.press("Reject and send");
    await robot.decision(built);
    await dana.page.getByRole("link", { name: /^Inbox/ }).click();
    await dana.tab("Sessions");
    const card = dana.page.locator(".card", { hasText: "Make the cart use Decimal" });
    await card.getByText("Step 2 of 3:").waitFor();
    await card.click();
    await dana.page.getByRole("heading", { name: "Make the cart use Decimal" }).waitFor();
    await dana.page.getByText("Plan, 1 of 3 done").waitFor();
    await dana.page.locator(".why", { hasText: "Writing a test⟨U+202E⟩" }).waitFor();
    await dana.page.getByText("“Not on a Friday”").waitFor();
    const message = dana.page.getByRole("textbox", { name: "Message to the agent" });
    expect(await message.getAttribute("placeholder")).toBe("Message Claude Code");
    await message.fill("Also update the changelog.");
    await dana.press("Send");
    await dana.page.locator(".bubble", { hasText: "Also update the changelog." }).waitFor();
    expect(await dana.page.locator("body").innerText()).not.toContain("9f3c2d1e");
    await dana.shot("session");
  });

  test("a paired device vouches for another, which then approves", async () => {
    const phone = await Person.open(scene.browser, stage);
    await phone.join(stage.invite("approver", "dana"));
    await phone.page.goto(`${stage.url}/#/vouch`);
    const card = await phone.page.getByRole("textbox", { name: "The new device's card" }).inputValue();
    const digits = await phone.digits();
    await dana.page.goto(`${stage.url}/#/vouch`);
    await dana.page.getByRole("textbox", { name: "The new device's card" }).first().fill(card);
    await dana.press("Continue");
    await dana.page.getByRole("button", { name: "Sign" }).waitFor();
    expect(await dana.digits()).toBe(digits);
    await dana.page.getByRole("textbox", { name: "What do you call it?" }).fill("Dana's phone");
    await dana.press("Sign");
    const voucher = await dana.page.getByRole("textbox", { name: "Voucher vm" }).inputValue();
    await phone.page.getByRole("textbox", { name: "Voucher" }).fill(voucher);
    await phone.press("Use this voucher");
    await phone.press("They are the same");
    await phone.page.getByText("This device can approve for vm").waitFor();
    await vm.run(["devices", "update"]);
    const asked = vm.start("exec", "--", "echo", "vouched");
    await phone.open("echo vouched");
    await dana.page.getByRole("link", { name: /^Inbox/ }).click();
    const waiting = await dana.card("echo vouched");
    await phone.press(/^Approve/);
    await waiting.waitFor({ state: "detached" });
    expect(await asked.ended).toBe(0);
    // Its answers have its name, and are checked by its keys.
    const named = vm.start("exec", "--", "echo", "named");
    await dana.open("echo named");
    await phone.open("echo named");
    await phone.press("Reject");
    const said = dana.page.getByText("You rejected this on Dana's phone").filter({ visible: true }).first();
    await said.waitFor();
    expect(await said.textContent()).toContain("Signature checked here.");
    await dana.shot("elsewhere-named");
    await named.ended;
    // And is revoked again by the one that vouched.
    await dana.tab("Devices");
    await dana.openFold("Revoke a device of yours");
    await dana.tap(dana.page.locator(".vouched").getByRole("button", { name: "Revoke" }));
    await dana.page.getByText("vm: signed and sent, waiting for the machine to confirm.").waitFor();
    await vm.run(["devices", "update"]);
    expect(await vm.run(["devices", "list"])).toMatch(/revoked/);
    expect(phone.problems).toEqual([]);
    await phone.context.close();
  });

  test("a diff of 20,000 lines scrolls without a long task", async () => {
    const lines = Array.from(
      { length: 20_000 },
      (_, at) => `+const value${at} = compute(${at}); // ${"x".repeat(at % 60)}`,
    );
    const payload = JSON.stringify({
      schema: "org.proto.payload",
      version: 1,
      diff: `--- /dev/null\n+++ b/big.ts\n@@ -0,0 +1,20000 @@\n${lines.join("\n")}\n`,
      files: [{ path: "big.ts", status: "added", added: 20_000, removed: 0, resultDigest: "0".repeat(64) }],
      effects: [],
    });
    await robot.ask({ artifactType: "patch.review", payload });
    await dana.open("big.ts");
    await dana.unfold("big.ts");
    await dana.page.getByText("const value0 =").waitFor();
    // Another program on this machine can hold up a task, so the best of three rounds counts.
    let best = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 3 && best >= 200; round += 1) {
      await dana.page.evaluate(() => {
        window.scrollTo(0, 0);
        const tasks: number[] = [];
        (window as unknown as { tasks: number[] }).tasks = tasks;
        new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({
          type: "longtask",
        });
      });
      await dana.page.mouse.move(180, 400);
      for (let step = 0; step < 60; step += 1) await dana.page.mouse.wheel(0, 1_500);
      await dana.page.waitForTimeout(500);
      expect(await dana.page.evaluate(() => window.scrollY)).toBeGreaterThan(20_000);
      await dana.page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
      await dana.page.getByText("const value19999 =").waitFor();
      await dana.page.waitForTimeout(500);
      const tasks = await dana.page.evaluate(() => (window as unknown as { tasks: number[] }).tasks);
      process.stdout.write(`longest task while 20,000 lines scroll: ${Math.round(Math.max(0, ...tasks))} ms\n`);
      best = Math.min(best, Math.max(0, ...tasks));
    }
    // The goal is 200 ms; a busy machine takes longer. All of the diff in one task would take seconds.
    expect(best).toBeLessThan(Number(process.env["COUNTERSIGN_MAX_TASK_MS"] ?? 1_000));
    await dana.press("Reject");
  });

  test("digits that differ pair nothing, here and at the gateway", async () => {
    const other = await Robot.join(stage, "other");
    const { code, finish } = await other.pair(true);
    await dana.page.goto(`${stage.url}/#/pair`);
    await dana.page.getByRole("textbox", { name: "Pairing link or code" }).fill(code);
    await dana.press("Pair");
    await dana.page.getByRole("heading", { name: "Compare the digits" }).waitFor();
    expect(await dana.digits()).toBe(await finish());
    await dana.press("They differ");
    await dana.page.getByText("Nothing was paired.", { exact: false }).waitFor();
    await dana.press("To the inbox");
    await dana.tab("Devices");
    await dana.page.locator("summary", { hasText: "build-1" }).waitFor();
    expect(await dana.page.locator("summary", { hasText: "other" }).count()).toBe(0);
  });

  test("a machine that is not trusted any more can't ask", async () => {
    const waiting = await robot.ask({ payload: robot.command(["make", "waiting"]) });
    await dana.page.goto(`${stage.url}/#/`);
    await dana.card("make waiting");
    await dana.page.goto(`${stage.url}/#/devices`);
    const card = await dana.openFold("build-1");
    await card.getByRole("button", { name: "Stop trusting this machine" }).click();
    await dana.tap(card.getByRole("button", { name: "Stop trusting it" }));
    await card.getByText("not trusted since").waitFor();
    await dana.page.goto(`${stage.url}/#/request/${encodeURIComponent(waiting.requestId)}`);
    await dana.page.locator(".pane").getByText("What can't be opened can't be approved.", { exact: false }).waitFor();
    expect(await dana.page.getByRole("button", { name: /^(Approve|Reject)/ }).count()).toBe(0);
    const built = await robot.ask({ payload: robot.command(["make", "untrusted"]), repoRef: "repo:y" });
    await dana.page.goto(`${stage.url}/#/request/${encodeURIComponent(built.requestId)}`);
    await dana.page.locator(".pane").getByText("What can't be opened can't be approved.", { exact: false }).waitFor();
    expect(await dana.page.getByRole("button", { name: /^(Approve|Reject)/ }).count()).toBe(0);
  });

  test("nothing went wrong in the page, and nothing came from elsewhere", () => {
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
