// The recovery code in the browser, as docs/recovery.md has it: shown once, used on a device that joined again after its
// storage was lost, and used up.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { openBrowser, Person } from "./browser.ts";
import { type Machine, type Running, Stage, until } from "./stage.ts";

const stage = new Stage();
let browser: Browser;
let hal: Person;
let vm: Machine;
let code = "";
let voucher = "";

beforeAll(async () => {
  await stage.start();
  browser = await openBrowser();
  vm = await stage.machine("vm");
  hal = await Person.open(browser, stage);
});
afterAll(async () => {
  await browser?.close();
  await stage.end();
});

/** Joins, and returns the code that is shown. */
async function joinAndWrite(): Promise<string> {
  await hal.press("Join");
  await hal.page.getByRole("heading", { name: "Write this on paper" }).waitFor();
  const shown = (await hal.page.locator(".recovery span").allTextContents()).join("-");
  await hal.press("I have written it down");
  await hal.page.getByRole("link", { name: "Devices" }).waitFor();
  return shown;
}

/** Starts to take a device at the machine; the tool shows its card, and waits for what the new device shows. */
async function accept(): Promise<{ card: string; digits: string; running: Running }> {
  const running = vm.startInTerminal(["recovery", "accept"], []);
  await until("the question for the text", () => running.text().includes("What the new device shows:"));
  const card = /countersign-machine#\S+/.exec(running.text())?.[0] ?? "";
  const digits = /(?:\d{5} ){5}\d{5}/.exec(running.text())?.[0] ?? "";
  return { card, digits, running };
}

async function typeCode(text: string, card: string): Promise<void> {
  await hal.page.goto(`${stage.url}/#/recover`);
  await hal.page.getByRole("textbox", { name: "Recovery code" }).fill(text);
  await hal.page.getByRole("textbox", { name: "Card of the machine" }).fill(card);
  await hal.press("Continue");
}

/** Everything that this browser keeps for the page, as text. */
async function stored(): Promise<string> {
  return hal.page.evaluate(async () => {
    const read = <T>(request: IDBRequest<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
    const database = await read(indexedDB.open("countersign"));
    const stores = [...database.objectStoreNames].map((name) =>
      read(database.transaction(name).objectStore(name).getAll()),
    );
    const values = JSON.stringify(await Promise.all(stores));
    database.close();
    return `${values} ${JSON.stringify({ ...localStorage })} ${JSON.stringify({ ...sessionStorage })} ${location.href}`;
  });
}

describe("the recovery code in the browser", () => {
  test("is shown once, is not kept, and is known to the machine after pairing", async () => {
    await hal.page.goto(stage.invite("approver", "hal"));
    code = await joinAndWrite();
    expect(code).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){6}$/);
    await hal.pairByLink(vm);
    expect(await vm.run(["devices", "update"])).toMatch(/recovery code \S+ works/);
    const kept = await stored();
    for (const text of [code, code.replaceAll("-", "")]) expect(kept).not.toContain(text);
  });

  test("after the storage was lost, a new device joins in the same name, and can't approve yet", async () => {
    await hal.loseStorage();
    await hal.press("Join again");
    await hal.press("Paste a link instead");
    await hal.page.getByRole("textbox", { name: "Paste the invitation link" }).fill(stage.invite("approver", "hal"));
    await hal.press("Continue");
    const other = await joinAndWrite();
    expect(other).not.toBe(code);
    await hal.page.getByText("This device is not paired with a machine yet.").first().waitFor();
  });

  test("a code with a slip and a card of something else are noticed", async () => {
    const { card, running } = await accept();
    running.child.kill("SIGTERM");
    await typeCode(`${code.slice(0, -1)}${code.endsWith("0") ? "1" : "0"}`, card);
    await hal.page.locator(".problem").waitFor();
    await typeCode(code, "countersign-device#x.y");
    await hal.page.getByText("This is no card.", { exact: false }).waitFor();
  });

  test("is typed with the card of the machine, whose digits are compared", async () => {
    const { card, digits, running } = await accept();
    await typeCode(code.toLowerCase().replaceAll("-", " "), card);
    await hal.page.getByRole("heading", { name: "Compare the digits" }).waitFor();
    expect(await hal.digits()).toBe(digits);
    await hal.shot("recover-digits");
    await hal.press("They are the same");
    voucher = await hal.page.getByRole("textbox", { name: "Voucher" }).inputValue();
    await hal.shot("recover-done");
    // The machine takes it from a day on, and not before.
    running.child.stdin?.write(`${voucher}\n`);
    expect(await running.ended).toBe(86);
    expect(running.text()).toContain("is not a day old");
  });

  test("a day later the machine takes the new device, and refuses the lost one", async () => {
    const profiles = join(vm.home, "data", "countersign", "profiles");
    const file = join(profiles, readdirSync(profiles)[0] ?? "", "pins.json");
    const text = readFileSync(file, "utf8");
    const { pins } = JSON.parse(text) as { pins: readonly { since: string }[] };
    const since = pins.find((pin) => JSON.stringify(pin).includes("ecovery"))?.since ?? "";
    expect(since).toMatch(/^20\d\d-/);
    writeFileSync(file, text.replaceAll(`"${since}"`, `"${Number(since.slice(0, 4)) - 1}${since.slice(4)}"`));
    const { running } = await accept();
    running.child.stdin?.write(`${voucher}\n`);
    expect(await running.ended).toBe(0);
    expect(running.text()).toContain("takes the place of");
    const devices = await vm.run(["devices", "list"]);
    expect(devices).toContain("by a recovery code, until");
    expect(devices).toMatch(/revoked \d/);
  });

  test("the new device approves", async () => {
    const asked = vm.start("exec", "--", "touch", "recovered.txt");
    await hal.open("touch recovered.txt");
    await hal.answer(/^Approve/);
    await hal.page.getByText("Ran without an error").waitFor();
    expect(await asked.ended).toBe(0);
  });

  test("it makes a code in its turn, which the machine learns of", async () => {
    await hal.page.goto(`${stage.url}/#/devices`);
    await hal.openFold("Recovery code");
    await hal.press("Make a new recovery code");
    await hal.press("I have written it down");
    expect(await vm.run(["devices", "update"])).toMatch(/recovery code \S+ works/);
  });

  test("the code was used up, is nowhere in the browser, and nothing went wrong in the page", async () => {
    const { card, running } = await accept();
    await typeCode(code, card);
    await hal.press("They are the same");
    await hal.page.getByText("The gateway does not know this code.", { exact: false }).waitFor();
    running.child.kill("SIGTERM");
    await hal.page.goto(`${stage.url}/#/`);
    const kept = await stored();
    for (const secret of [code, code.replaceAll("-", ""), code.toLowerCase()]) expect(kept).not.toContain(secret);
    expect(hal.problems).toEqual([]);
    expect(hal.foreign).toEqual([]);
  });
});
