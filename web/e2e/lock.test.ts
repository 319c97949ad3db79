// The lock of a device, with Chromium's virtual authenticators: one whose key stays in the device and counts, and one whose key is
// synchronised and does not. A real machine pins it when it pairs, and runs nothing dangerous without it.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

import type { CDPSession } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { formatCard, parseVoucher } from "../src/protocol/card.ts";
import { verifyConfirmed, verifyStatement } from "../src/protocol/statement.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { newDevice, Random } from "../test/random.ts";
import { Person } from "./browser.ts";
import { Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import type { Machine } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;

beforeAll(() => scene.open());
afterAll(() => scene.end());

const INTERNAL = {
  protocol: "ctap2",
  transport: "internal",
  hasUserVerification: true,
  hasResidentKey: true,
  isUserVerified: true,
  automaticPresenceSimulation: true,
} as const;

/** Somebody whose device has a lock. */
async function withLock(options: object): Promise<{ person: Person; devtools: CDPSession; authenticatorId: string }> {
  const person = await Person.open(scene.browser, stage);
  const devtools = await person.context.newCDPSession(person.page);
  await devtools.send("WebAuthn.enable");
  const added = await devtools.send("WebAuthn.addVirtualAuthenticator", { options: { ...INTERNAL, ...options } });
  return { person, devtools, authenticatorId: added.authenticatorId };
}

describe.each([
  ["a key that stays in the device", "dana", "vm", {}],
  ["a synchronised key", "erin", "tower", { defaultBackupEligibility: true, defaultBackupState: true }],
] as const)("%s", (_, name, id, options) => {
  let vm: Machine;
  let dana: Person;
  let devtools: CDPSession;
  let authenticatorId: string;

  beforeAll(async () => {
    vm = await stage.machine(id);
    ({ person: dana, devtools, authenticatorId } = await withLock(options));
    await dana.join(stage.invite("approver", name));
  });
  afterAll(() => dana.context.close());

  const verified = (isUserVerified: boolean) =>
    devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });

  test("is pinned by the machine, with the pairing", async () => {
    await dana.pairByLink(vm);
    const [device] = (JSON.parse(await vm.run(["devices", "list", "--json"])) as { devices: { lock: object }[] })
      .devices;
    expect(device?.lock).toEqual({ algorithm: "ES256", origin: stage.url });
    expect(await vm.run(["devices", "list"])).toContain("device lock");
    await dana.page.goto(`${stage.url}/#/devices`);
    await dana.page.locator("summary", { hasText: "This device ·" }).click();
    await dana.page.getByText(`Also checked by ${id}: it takes approvals`).waitFor();
    await dana.page.goto(`${stage.url}/#/`);
  });

  test("approves what is dangerous, and the proof says that a person was verified", async () => {
    mkdirSync(join(vm.work, "build"));
    const asked = vm.start("exec", "--", "rm", "-r", "build");
    await dana.open("rm -r build");
    await dana.holdToApprove();
    expect(await asked.ended, asked.text()).toBe(0);
    const folder = join(vm.work, "proof");
    await vm.run(["export", folder]);
    const said = await vm.run(["verify", folder]);
    expect(said).toMatch(/✓ proven +The device has verified a person for exactly this decision/);
    expect(said).toMatch(/✓ proven +This lock is that of the device/);
    const { credentials } = await devtools.send("WebAuthn.getCredentials", { authenticatorId });
    expect(credentials).toHaveLength(1);
  });

  test("is not asked for what is harmless, and signs nothing for somebody else", async () => {
    const harmless = vm.start("exec", "--", "touch", "done.txt");
    await dana.open("touch done.txt");
    await verified(false);
    await dana.press(/^Approve/);
    expect(await harmless.ended, harmless.text()).toBe(0);
    mkdirSync(join(vm.work, "build"));
    const asked = vm.start("exec", "--", "rm", "-r", "build");
    await dana.open("rm -r build");
    await dana.holdToApprove();
    await dana.page.getByText(/didn't confirm it was you. Nothing was signed/).waitFor();
    await verified(true);
    await dana.press("Reject");
    expect(await asked.ended).toBe(81);
  });

  test("a page that signs without it approves nothing dangerous", async () => {
    // The keys of the device still sign, as they would for a page that somebody has put in the place of this one.
    await devtools.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId });
    await dana.page.evaluate(async () => {
      const opening = indexedDB.open("countersign");
      await new Promise((resolve) => (opening.onsuccess = resolve));
      const store = opening.result.transaction("values", "readwrite").objectStore("values");
      const reading = store.get("profile");
      await new Promise((resolve) => (reading.onsuccess = resolve));
      const writing = store.put({ ...reading.result, lock: undefined }, "profile");
      await new Promise((resolve) => (writing.onsuccess = resolve));
      opening.result.close();
    });
    await dana.page.reload();
    const asked = vm.start("exec", "--", "rm", "-r", "build");
    await dana.open("rm -r build");
    await dana.holdToApprove();
    expect(await asked.ended, asked.text()).toBe(86);
    expect(asked.text()).toMatch(/an approval of this needs the device lock/i);
    expect(existsSync(join(vm.work, "build"))).toBe(true);
  });
});

describe("a machine in this process", () => {
  let robot: Robot;
  let ada: Person;
  let devtools: CDPSession;
  let authenticatorId: string;

  beforeAll(async () => {
    robot = await Robot.join(stage, "build-7");
    ({ person: ada, devtools, authenticatorId } = await withLock({}));
    await ada.join(stage.invite("approver", "ada"));
  });
  afterAll(() => ada.context.close());

  test("a person who does not want the lock to be set up pairs without it, and says so", async () => {
    await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
    const { link, finish } = await robot.pair();
    await ada.page.goto(link);
    await ada.press("Connect");
    await ada.page.getByText("The device lock wasn't set up, so nothing was paired.").waitFor();
    await ada.press("Connect without it");
    await finish();
    await ada.press("To the inbox");
    expect(robot.pins.all[0]?.lock).toBeUndefined();
    const built = await robot.ask({ payload: robot.command(["make"]), needsPerson: true });
    await ada.open("make");
    await ada.press(/^Approve/);
    // The machine would refuse it, whatever the lock says: nothing is signed, and the lock is not asked.
    await ada.page.getByText("This machine doesn't know this device's lock.").waitFor();
    await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: true });
    await ada.press("Reject");
    expect(await robot.decision(built)).toMatchObject({ outcome: "reject", isVerified: false });
  });

  test("where the relay takes no lock, the person is asked whether to pair without it", async () => {
    const hasLock = (body: string | null): boolean => body?.includes("org.countersign.lock") ?? false;
    await ada.page.route("**/v1/pairing/complete", (route) =>
      hasLock(route.request().postData()) ? route.fulfill({ status: 400, body: "{}" }) : route.continue(),
    );
    const { link, finish } = await robot.pair();
    await ada.page.goto(link);
    await ada.press("Connect");
    await ada.page.getByText("The relay refused this, perhaps because it doesn't know device locks yet.").waitFor();
    await ada.press("Connect without it");
    await finish();
    await ada.press("To the inbox");
    await ada.page.unroute("**/v1/pairing/complete");
    expect(robot.pins.all[0]?.lock).toBeUndefined();
  });

  test("by a typed code, the lock is part of what people compare", async () => {
    const { code, finish } = await robot.pair(true);
    await ada.page.goto(`${stage.url}/#/pair`);
    await ada.page.getByRole("textbox", { name: "Pairing link or code" }).fill(code);
    await ada.press("Pair");
    const digits = await finish();
    const shown = ada.page.locator(".digits").first();
    await shown.waitFor();
    expect((await shown.innerText()).replace(/\s+/g, " ").trim()).toBe(digits);
    await ada.press("They are the same");
    await ada.press("To the inbox");
    expect(robot.pins.all[0]?.lock?.origin).toBe(stage.url);
  });

  test("where its rules want a verified person, a harmless command asks for the lock too", async () => {
    const built = await robot.ask({ payload: robot.command(["make", "release"]), needsPerson: true });
    await ada.open("make release");
    await ada.page.getByText("with your device lock").waitFor();
    await ada.press(/^Approve/);
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve", isVerified: true });
  });

  test("a voucher for a machine that knows the lock is confirmed with it", async () => {
    const tablet = await newDevice(new Random(Date.now()), "ada");
    const voucherOf = async (isVerified: boolean) => {
      await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: isVerified });
      await ada.press("Sign");
    };
    await ada.page.goto(`${stage.url}/#/vouch`);
    const card = formatCard("device", { id: "ada", bundle: tablet.keys.bundle });
    // The first box shows the card of this device.
    await ada.page.getByRole("textbox", { name: "The new device's card" }).first().fill(card);
    await ada.press("Continue");
    await ada.page.getByText("Your device lock is asked for build-7, once for each").waitFor();
    await voucherOf(false);
    await ada.page.getByText("so nothing was signed for build-7. Try again.").waitFor();
    await voucherOf(true);
    const text = await ada.page.getByRole("textbox", { name: "Voucher build-7" }).inputValue();
    const { statement } = parseVoucher(text);
    const pin = robot.pins.all[0];
    if (pin === undefined) throw new Error("not pinned");
    expect(verifyStatement(statement, pin.bundle, "build-7", Timestamp.ofMillis(Date.now())).type).toBe("vouch");
    await verifyConfirmed(statement, pin.lock);
  });

  test("a lock that is lost is set up again, and the page says with whom to pair again", async () => {
    await ada.page.goto(`${stage.url}/#/devices`);
    await ada.page.locator("summary", { hasText: "This device ·" }).click();
    await ada.page.getByText("Also checked by build-7").waitFor();
    await ada.press("Set up the lock again");
    await ada.page.getByText("The lock is set up again. Pair again with build-7").waitFor();
    await ada.page.getByText("To let a machine check it too, pair with that machine again.").waitFor();
    const built = await robot.ask({ payload: robot.command(["make", "again"]), needsPerson: true });
    await ada.page.goto(`${stage.url}/#/`);
    await ada.open("make again");
    await ada.press(/^Approve/);
    await ada.page.getByText("This machine doesn't know this device's lock.").waitFor();
    const { link, finish } = await robot.pair();
    await ada.page.goto(link);
    await ada.press("Connect");
    await finish();
    await ada.press("To the inbox");
    await ada.open("make again");
    await ada.press(/^Approve/);
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve", isVerified: true });
  });

  test("nothing went wrong in the page", () => {
    expect(ada.problems).toEqual([]);
  });
});
