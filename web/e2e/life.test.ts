// What happens around an answer: expiry, withdrawal, restarts, other tabs and devices, no network, lost keys.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { DESK, Person } from "./browser.ts";
import type { Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { type Machine, until } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;
let dana: Person;
let robot: Robot;
let vm: Machine;

beforeAll(async () => {
  await scene.start({ viewport: DESK });
  ({ dana, robot } = scene);
  vm = await stage.machine("vm");
});
afterAll(() => scene.end());

describe("around an answer, on a desk", () => {
  test("pairs with the tool by a typed code and equal digits", async () => {
    const running = vm.startInTerminal(["pair", "--typed"], [["Type yes", "yes"]]);
    const code = await until("a code", () => /\b[B-Z]{4}-[B-Z]{4}\b/.exec(running.text())?.[0]);
    await dana.page.goto(`${stage.url}/#/pair`);
    await dana.page.getByRole("textbox", { name: "Pairing link or code" }).fill(code.toLowerCase());
    await dana.press("Pair");
    await dana.page.getByRole("heading", { name: "Compare the digits" }).waitFor();
    const digits = await dana.digits();
    await dana.shot("digits");
    await until("the same digits on the machine", () => running.text().includes(digits));
    running.child.stdin?.write("yes\n");
    await dana.press("They are the same");
    await dana.page.getByRole("heading", { name: "Paired" }).waitFor();
    await dana.press("To the inbox");
    expect(await running.ended).toBe(0);
  });

  test("several at once, and none is missed; arrivals don't move what is on the screen", async () => {
    await dana.page.goto(`${stage.url}/#/`);
    const first = await robot.ask({ payload: robot.command(["make", "first"]) }, 900);
    await dana.page.locator(".row", { hasText: "make first" }).waitFor();
    const rest = await Promise.all(
      Array.from({ length: 4 }, (_, at) => robot.ask({ payload: robot.command(["make", `more${at}`]) }, 300 - at)),
    );
    await dana.page.getByRole("button", { name: "4 new" }).waitFor();
    expect(await dana.page.locator(".list .row").count()).toBe(1);
    await dana.press("4 new");
    expect(await dana.page.locator(".list .row .sub").allTextContents()).toEqual([
      "make more3",
      "make more2",
      "make more1",
      "make more0",
      "make first",
    ]);
    await dana.shot("inbox-desk");
    const withdrawAll = async (): Promise<void> => {
      for (const built of [first, ...rest]) await robot.withdraw(built);
    };
    // Each says so for five seconds only.
    await Promise.all([dana.page.getByText("took this back.").first().waitFor(), withdrawAll()]);
    await dana.page.getByText("Nothing is waiting").waitFor({ timeout: 15_000 });
  });

  test("taken back while it is open", async () => {
    const built = await robot.ask({ payload: robot.command(["make", "deploy"]) });
    await dana.open("make deploy");
    await robot.withdraw(built);
    await dana.page.locator(".answer-bar", { hasText: "took this back." }).waitFor();
    expect(await dana.page.getByRole("button", { name: /^(Approve|Reject)/ }).count()).toBe(0);
  });

  test("expires while it is open, and is listed as expired", async () => {
    const built = await robot.ask({ payload: robot.command(["make", "late"]) }, 10);
    await dana.open("make late");
    await dana.page.locator(".answer-bar", { hasText: "Its time ran out." }).waitFor();
    expect(await dana.page.getByRole("button", { name: /^(Approve|Reject)/ }).count()).toBe(0);
    expect(await robot.isUndecided(built)).toBe(true);
    await dana.page.goto(`${stage.url}/#/expired`);
    await dana.page.locator(".row", { hasText: "make late" }).waitFor();
    await dana.page.goto(`${stage.url}/#/`);
  });

  test("the gateway is restarted, and what waits is still there", async () => {
    const built = await robot.ask({ payload: robot.command(["make", "again"]) });
    await dana.card("make again");
    await stage.stopGateway();
    await dana.page.getByText(/^No connection\. You can read/).waitFor();
    await stage.startGateway();
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached", timeout: 20_000 });
    await dana.open("make again");
    await dana.answer(/^Approve/);
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve" });
  });

  test("without a network nothing can be answered, the shell opens, and it comes back", async () => {
    const built = await robot.ask({ payload: robot.command(["make", "offline"]) });
    await dana.open("make offline");
    await dana.page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
    stage.front.down();
    await dana.page.locator(".answer-bar", { hasText: "No connection." }).waitFor();
    await dana.shot("offline");
    expect(await dana.page.getByRole("button", { name: /^Approve/ }).isDisabled()).toBe(true);
    await dana.page.keyboard.press("r");
    await dana.page.reload();
    await dana.page.getByText(/^No connection\. You can read/).waitFor();
    stage.front.up();
    await dana.page.evaluate(() => window.dispatchEvent(new Event("online")));
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached", timeout: 20_000 });
    expect(await robot.isUndecided(built)).toBe(true);
    await dana.open("make offline");
    await dana.answer("Reject");
    expect(await robot.decision(built)).toMatchObject({ outcome: "reject" });
  });

  test("the browser says that it is offline and online again, while its WebSocket stays open", async () => {
    await dana.page.goto(`${stage.url}/#/`);
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached" });
    await dana.context.setOffline(true);
    await dana.page.getByText(/^No connection\. You can read/).waitFor();
    await dana.context.setOffline(false);
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached", timeout: 20_000 });
    const built = await robot.ask({ payload: robot.command(["make", "online"]) });
    await dana.open("make online");
    await dana.answer(/^Approve/);
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve" });
  });

  test("without WebSockets it goes on over server-sent events", async () => {
    stage.front.hasSockets = false;
    await dana.page.reload();
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached", timeout: 20_000 });
    expect(stage.front.asked.some((path) => path.startsWith("/v1/sse/"))).toBe(true);
    const built = await robot.ask({ payload: robot.command(["make", "sse"]) });
    await dana.card("make sse");
    await robot.withdraw(built);
    stage.front.hasSockets = true;
    await dana.page.reload();
  });

  test("a gateway without tickets is listened to over server-sent events, and what ends is learnt by reading", async () => {
    // The page that the test before has reloaded connects first.
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached", timeout: 20_000 });
    stage.front.hasTickets = false;
    const before = stage.front.upgrades;
    const streams: (string | undefined)[] = [];
    dana.page.on("request", (request) => {
      if (request.url().includes("/v1/sse/")) streams.push(request.headers()["authorization"]);
    });
    await dana.page.reload();
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached", timeout: 20_000 });
    const built = await robot.ask({ payload: robot.command(["make", "ticketless"]) });
    await dana.card("make ticketless");
    // One, or another where the first was opened before the reload was over.
    expect(new Set(streams.map((header) => header?.slice(0, 11)))).toEqual(new Set(["Bearer csk_"]));
    expect(stage.front.upgrades).toBe(before);
    await Promise.all([dana.page.getByText("took this back.").first().waitFor(), robot.withdraw(built)]);
    stage.front.hasTickets = true;
    await dana.page.reload();
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached", timeout: 20_000 });
  });

  test("two tabs: what one answers leaves the other", async () => {
    const other = await dana.context.newPage();
    dana.watch(other);
    await other.goto(`${stage.url}/#/`);
    const built = await robot.ask({ payload: robot.command(["make", "tabs"]) });
    const card = other.locator(".groups .row", { hasText: "make tabs" });
    await card.waitFor();
    await dana.open("make tabs");
    await dana.answer(/^Approve/);
    await card.waitFor({ state: "detached" });
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve" });
    await other.goto(`${stage.url}/#/history`);
    await other.locator(".row", { hasText: "make tabs" }).waitFor();
    await other.close();
  });

  test("ten thousand answers: the newest at once, the others by searching", async () => {
    await dana.page.evaluate(async (count) => {
      const request = <T>(source: IDBRequest<T>): Promise<T> =>
        new Promise((resolve, reject) => {
          source.onsuccess = () => resolve(source.result);
          source.onerror = () => reject(source.error);
        });
      const database = await request(indexedDB.open("countersign", 1));
      const transaction = database.transaction("sent", "readwrite");
      const store = transaction.objectStore("sent");
      const all: Record<string, unknown>[] = await request(store.getAll());
      const settled = all.find((record) => record["failed"] === undefined);
      if (settled === undefined) throw new Error("nothing was answered before");
      for (let at = 0; at < count; at += 1) {
        const signedAt = new Date(Date.now() - (at + 1) * 60_000).toISOString();
        const text = `make target-${at}`;
        const receipt = { outcome: "applied", at: signedAt };
        const sentence = `Runs ${text}`;
        store.put({ ...settled, requestId: `old-${at}`, signedAt, headline: text, sentence, receipt });
      }
      await new Promise((resolve) => {
        transaction.oncomplete = resolve;
      });
      database.close();
    }, 10_000);
    await dana.page.goto(`${stage.url}/#/`);
    await dana.page.reload();
    await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached", timeout: 20_000 });
    const millis = await dana.page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          const began = performance.now();
          const look = (): void => {
            if (document.querySelectorAll(".rows .row").length >= 50) resolve(performance.now() - began);
            else requestAnimationFrame(look);
          };
          location.hash = "#/history";
          look();
        }),
    );
    const devtools = await dana.context.newCDPSession(dana.page);
    await devtools.send("HeapProfiler.collectGarbage");
    const { usedSize } = await devtools.send("Runtime.getHeapUsage");
    console.log(
      `10,000 answers: the first screen in ${Math.round(millis)} ms, ${Math.round(usedSize / 1e6)} MB in memory`,
    );
    expect(await dana.page.locator(".rows .row").count()).toBe(50);
    await dana.page.getByRole("button", { name: /^Show more/ }).click();
    expect(await dana.page.locator(".rows .row").count()).toBe(100);
    await dana.shot("history-many");
    await dana.page.getByRole("searchbox", { name: "Search your answers" }).fill("Target-9876");
    await dana.page.locator(".row", { hasText: "make target-9876" }).waitFor();
    expect(await dana.page.locator(".rows .row").count()).toBe(1);
    await dana.page.getByRole("searchbox").fill("nothing like this");
    await dana.page.getByText("No answer here.").waitFor();
    await dana.shot("history-nothing");
  });

  test("two devices race, and the second learns it", async () => {
    const phone = await Person.open(scene.browser, stage);
    await phone.join(stage.invite("approver", "dana"));
    await phone.pairWith(robot);
    const built = await robot.ask({ payload: robot.command(["make", "race"]) });
    await dana.open("make race");
    await phone.open("make race");
    await dana.settle();
    // One of them may see the other's answer before it can press: the button is gone then.
    await Promise.allSettled([
      dana.page.getByRole("button", { name: /^Approve/ }).click({ timeout: 5_000 }),
      phone.page.getByRole("button", { name: "Reject" }).click({ timeout: 5_000 }),
    ]);
    const { outcome } = await robot.decision(built);
    const [winner, loser] = outcome === "approve" ? [dana, phone] : [phone, dana];
    await winner.page.getByText("The relay took it").waitFor();
    await loser.page
      .getByText(/Someone else answered first|You (approved|rejected) this on another device/)
      // On a phone the list says it too, behind the request.
      .filter({ visible: true })
      .first()
      .waitFor();
    const plain = await robot.ask({ payload: robot.command(["make", "elsewhere"]) });
    await dana.open("make elsewhere");
    await phone.open("make elsewhere");
    await phone.press("Reject");
    await robot.decision(plain);
    const said = dana.page.getByText("You rejected this on another device").filter({ visible: true }).first();
    await said.waitFor();
    expect(await said.textContent()).toContain("Says the relay; not checked here.");
    await dana.shot("elsewhere");
    expect(phone.problems).toEqual([]);
    await phone.context.close();
  });

  test("a device whose credential was revoked says so", async () => {
    const eve = await Person.open(scene.browser, stage);
    await eve.join(stage.invite("approver", "eve"));
    stage.revokeKeys("eve");
    await eve.page.getByRole("heading", { name: "This device may no longer answer" }).waitFor({ timeout: 20_000 });
    await eve.context.close();
  });

  test("lost keys are said, and joining again is offered", async () => {
    const fay = await Person.open(scene.browser, stage);
    await fay.join(stage.invite("approver", "fay"));
    await fay.loseStorage();
    await fay.page.getByText("had joined as fay", { exact: false }).waitFor();
    await fay.shot("lost");
    await fay.press("Join again");
    await fay.page.getByRole("heading", { name: "Your agents ask. You decide." }).waitFor();
    await fay.context.close();
  });

  test("on an iPhone a tab explains how to install, and leaves the invitation unused", async () => {
    const userAgent =
      "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1";
    const gus = await Person.open(scene.browser, stage, { userAgent });
    const link = stage.invite("approver", "gus");
    await gus.page.goto(link);
    await gus.page.getByRole("heading", { name: "Install the app first" }).waitFor();
    expect(await gus.page.getByRole("textbox", { name: "Copy the invitation" }).inputValue()).toBe(link);
    await gus.shot("iphone");
    await gus.context.close();
    // The installed app has neither the fragment nor the storage of the tab.
    const app = await Person.open(scene.browser, stage, { userAgent });
    await app.context.addInitScript(() => {
      const { matchMedia } = window;
      window.matchMedia = (query) =>
        matchMedia.call(window, query.replace("(display-mode: standalone)", "(min-width: 0px)"));
    });
    await app.page.goto(stage.url);
    await app.page.getByRole("heading", { name: "Your agents ask. You decide." }).waitFor();
    await app.press("Paste a link instead");
    await app.page.getByRole("textbox", { name: "Paste the invitation link" }).fill("what was copied by mistake");
    await app.press("Continue");
    await app.page.getByText("This is not an invitation.", { exact: false }).waitFor();
    await app.page.getByRole("textbox", { name: "Paste the invitation link" }).fill(`  ${link}\n`);
    await app.press("Continue");
    await app.page.getByRole("heading", { name: "Join this relay?" }).waitFor();
    await app.press("Join");
    await app.press("I have written it down");
    await app.pairWith(robot);
    const built = await robot.ask({ payload: robot.command(["make", "installed"]) });
    await app.open("make installed");
    await app.answer(/^Approve/);
    expect(await robot.decision(built)).toMatchObject({ outcome: "approve" });
    expect([...app.problems, ...app.foreign]).toEqual([]);
    await app.context.close();
  });

  test("nothing went wrong in the page, and nothing came from elsewhere", () => {
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
