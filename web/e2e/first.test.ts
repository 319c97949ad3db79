// The main ways through the page, on a phone and on a desk: joining, pairing, and each kind of answer, with the real tool at
// the other end.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { DESK, Person, PHONE } from "./browser.ts";
import { patch, Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { type Machine, until } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;

beforeAll(() => scene.open());
afterAll(() => scene.end());

describe.each([
  ["phone", PHONE, "dana", "vm"],
  ["desk", DESK, "erin", "workstation"],
] as const)("from an invitation to answers: %s", (size, viewport, name, machine) => {
  let dana: Person;
  let vm: Machine;
  const shot = (of: string): Promise<void> => dana.shot(size === "phone" ? of : `${of}-${size}`);

  beforeAll(async () => {
    vm = await stage.machine(machine);
    dana = await Person.open(scene.browser, stage, { viewport });
  });
  afterAll(() => dana.context.close());

  test("joins with an invitation, and takes the link out of the address", async () => {
    const link = stage.invite("approver", name);
    await dana.page.goto(link);
    await dana.page.getByRole("heading", { name: "Join this relay?" }).waitFor();
    expect(dana.page.url()).toBe(`${stage.url}/#/`);
    await shot("join");
    await dana.press("Join");
    await dana.page.getByRole("heading", { name: "Write this on paper" }).waitFor();
    expect(await dana.page.locator(".recovery").textContent()).toMatch(/^[0-9A-HJKMNP-TV-Z]{28}$/);
    await shot("recovery-code");
    await dana.press("I have written it down");
    await dana.page.getByText("This device is not paired with a machine yet.").first().waitFor();
  });

  test("pairs by the link of the tool", async () => {
    await dana.pairByLink(vm);
    expect(await vm.run(["devices", "list"])).toContain(name);
    await dana.page.getByText("Nothing is waiting").first().waitFor();
  });

  test("approves a command, which runs, and shows the verified receipt", async () => {
    const asked = vm.start("exec", "--", "touch", "done.txt");
    await dana.open("touch done.txt");
    await shot("review-command");
    await dana.press(/^Approve/);
    await dana.page.getByText("Ran without an error").waitFor();
    expect(await asked.ended).toBe(0);
    expect(existsSync(join(vm.work, "done.txt"))).toBe(true);
    await shot("timeline");
  });

  test("rejects with words, and the command does not run", async () => {
    const asked = vm.start("exec", "--", "touch", "never.txt");
    await dana.open("touch never.txt");
    await dana.press("Reject and say why");
    await dana.page.getByRole("textbox", { name: "Your words" }).fill("not on a Friday");
    await shot("words");
    await dana.press("Reject and send");
    await dana.page.getByText("Stopped").waitFor();
    expect(await asked.ended).toBe(81);
    expect(asked.text()).toContain("not on a Friday");
    expect(existsSync(join(vm.work, "never.txt"))).toBe(false);
  });

  test("a dangerous command needs everything opened and a second's hold", async () => {
    mkdirSync(join(vm.work, "build"));
    const asked = vm.start("exec", "--", "rm", "-r", "build");
    await dana.open("rm -r build");
    await dana.page.locator(".effects .harm", { hasText: "eletes" }).first().waitFor();
    await dana.page.getByRole("button", { name: /^Hold to approve/ }).waitFor();
    await shot("dangerous");
    await dana.holdToApprove();
    await dana.page.getByText("Ran without an error").waitFor();
    expect(await asked.ended).toBe(0);
    expect(existsSync(join(vm.work, "build"))).toBe(false);
  });

  test("taken back at the desk, the card leaves by itself", async () => {
    const asked = vm.start("exec", "--", "touch", "back.txt");
    await dana.page.getByRole("link", { name: /^Inbox/ }).click();
    await dana.card("touch back.txt");
    await shot("inbox");
    // It says so for five seconds only.
    const said = dana.page.getByText("took this back.").first().waitFor();
    asked.child.kill("SIGINT");
    await said;
    await shot("taken-back");
    expect(await asked.ended).toBe(130);
    await dana.page.locator(".row", { hasText: "touch back.txt" }).waitFor({ state: "detached" });
  });

  test("approves a plan of the tool", async () => {
    writeFileSync(join(vm.work, "plan.md"), "# Move the shop\n\n1. stop it\n2. move it\n");
    const asked = vm.start("ask", "--plan", "plan.md");
    await dana.open("Move the shop");
    await dana.page.getByText("move it").waitFor();
    await dana.answer(/^Approve/);
    expect(await asked.ended).toBe(0);
  });

  test("approves a patch after one of its files was opened, and signs that", async () => {
    const robot = await Robot.join(stage, `build-${size}`);
    await dana.pairWith(robot);
    const built = await robot.ask({ artifactType: "patch.review", payload: patch(2, 150) });
    await dana.open("src/auth/file0.ts");
    await dana.unfold("file0.ts");
    await dana.page.getByText("of src/auth/file0.ts").first().waitFor();
    const approve = dana.page.getByRole("button", { name: /^Approve/ });
    await until("one file is opened", async () => (await approve.textContent())?.includes("1 of 2 files not opened"));
    await shot("patch");
    await dana.answer(/^Approve/);
    const { outcome, words } = await robot.decision(built);
    expect(outcome).toBe("approve");
    expect(words.shown).toMatch(new RegExp(`^1 of 2 files, .* page ${viewport.width}×${viewport.height}$`));
  });

  test("nothing went wrong in the page, and nothing came from elsewhere", () => {
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
