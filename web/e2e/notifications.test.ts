// Notifications, in a real browser with a real worker: switched on, shown while the page is closed, tapped, cleared, rejected
// from; and permission and subscription that are lost. `pushes.ts` says what is played.

import type { Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { axe } from "./axe.ts";
import { Person } from "./browser.ts";
import { fakePushService, Pushes } from "./pushes.ts";
import type { Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { type Machine, until } from "./stage.ts";

const PHONE_AGENT =
  "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36";
const WAITS = "A request is waiting.";
const WHO = { agent: "Claude Code", project: "shop" };

const scene = new Scene();
const { stage } = scene;
let dana: Person;
let robot: Robot;
let vm: Machine;
let pushes: Pushes;
/** What the page has registered: the path and the body of each call. */
const registered: { readonly path: string; readonly endpoint: string; readonly label: string }[] = [];

function heard(request: Request): void {
  const path = new URL(request.url()).pathname;
  if (request.method() === "PUT" && path.includes("/notifications/channels/"))
    registered.push({ path, ...(request.postDataJSON() as { endpoint: string; label: string }) });
}

beforeAll(async () => {
  await scene.start({ userAgent: PHONE_AGENT, permissions: ["notifications"] });
  ({ dana, robot } = scene);
  await dana.context.addInitScript(fakePushService);
  // Also those of the worker.
  dana.context.on("request", heard);
  vm = await stage.machine("vm");
  await dana.pairByLink(vm);
  await dana.page.reload();
  pushes = await Pushes.to(dana);
  pushes.channel = async () => registered.at(-1)?.path.split("/").at(-1) ?? "none";
});
afterAll(() => scene.end());

/** Closes the page, while the browser goes on. */
async function closePage(): Promise<void> {
  await dana.page.goto("about:blank");
  await until("the page is gone", () => pushes.isAlone());
}

async function openPage(place = "#/"): Promise<void> {
  await dana.page.goto("about:blank");
  await dana.page.goto(`${stage.url}/${place}`);
  await dana.page.getByText("Live", { exact: true }).waitFor({ state: "attached" });
}

/** The fold of this phone under Devices. */
async function thisPhone() {
  await openPage("#/devices");
  const fold = dana.page.locator("details", { has: dana.page.locator("summary", { hasText: "this phone" }) });
  await fold.waitFor();
  return fold;
}

/** Sets a permission as a person does in the settings of the browser. */
async function setPermission(setting: "granted" | "denied" | "prompt"): Promise<void> {
  const session = await scene.browser.newBrowserCDPSession();
  const { targetInfos } = await session.send("Target.getTargets");
  const browserContextId = targetInfos.find(({ url }) => url.startsWith(stage.url))?.browserContextId;
  if (browserContextId === undefined) throw new Error("the page is not open");
  const permission = { name: "notifications" };
  await session.send("Browser.setPermission", { permission, setting, origin: stage.url, browserContextId });
}

describe("notifications", () => {
  test("are offered once in the inbox, and switched on with a tap", async () => {
    await dana.page.getByText("Be told when something waits").waitFor();
    await dana.shot("notify-offer");
    expect(await axe(dana)).toEqual([]);
    await dana.press("Notify this phone");
    await until("it is registered", () => registered.length === 1);
    expect(registered[0]).toMatchObject({ label: "dana's phone" });
    await dana.page.getByText("Be told when something waits").waitFor({ state: "detached" });
    const fold = await thisPhone();
    await fold.getByText("Nothing sent yet").waitFor();
    await dana.shot("notify-on");
  });

  test("one is shown while the page is closed, says nothing of the request, and the gateway learns of it", async () => {
    const built = await robot.ask({ payload: robot.command(["make", "shown"], WHO) });
    await closePage();
    await pushes.deliver("dana", "request", built.requestId);
    expect(await pushes.shows(WAITS)).toEqual([{ title: "Countersign", body: WAITS, actions: ["Open"] }]);
    await until("the gateway knows", () => stage.front.answered.some((path) => path.endsWith("/receipts")));
    const fold = await thisPhone();
    await fold.locator("div", { hasText: /^Shown on the device\d\d:\d\d:\d\d$/ }).waitFor();
    // The address of the played service leads nowhere, which the page says with what to do.
    await fold.getByText("The relay can't reach the push service.", { exact: false }).waitFor();
    await dana.shot("notify-failing");
    expect(await axe(dana)).toEqual([]);
    // It waits still, so its notification stays.
    await pushes.shows(WAITS);

    // Tapped, it opens the request: in a new window if there is none, else in the one that is open.
    await closePage();
    expect(await pushes.tap()).toEqual([`/#/request/${built.requestId}`]);
    await pushes.shows();
    await openPage();
    await pushes.deliver("dana", "request", built.requestId);
    await pushes.shows(WAITS);
    expect(await pushes.tap("open")).toEqual(["focus"]);
    await dana.page.locator(".review", { hasText: "make shown" }).waitFor();
    await robot.withdraw(built);
  });

  test("several are one that leads to the inbox; a test says so and leads to the devices", async () => {
    // An open page would look for these two, which don't exist, and clear what says that they wait.
    await closePage();
    await pushes.deliver("dana", "request", "a", "b");
    await pushes.shows(WAITS);
    expect(await pushes.tap()).toEqual(["/#/"]);
    await pushes.deliver("dana", "test");
    await pushes.shows("This is a test. Notifications work.");
    expect(await pushes.tap()).toEqual(["/#/devices"]);
  });

  test("what was answered elsewhere is cleared when the page opens, and while it is open", async () => {
    const laptop = await Person.open(scene.browser, stage);
    await laptop.join(stage.invite("approver", "dana"));
    await laptop.pairWith(robot);
    const first = await robot.ask({ payload: robot.command(["make", "elsewhere"]) });
    await closePage();
    await pushes.deliver("dana", "request", first.requestId);
    await pushes.shows(WAITS);
    await laptop.open("make elsewhere");
    await laptop.answer("Reject");
    expect(await robot.decision(first)).toMatchObject({ outcome: "reject" });
    await openPage();
    await pushes.shows();

    const second = await robot.ask({ payload: robot.command(["make", "meanwhile"]) });
    await dana.card("make meanwhile");
    await pushes.deliver("dana", "request", second.requestId);
    await pushes.shows(WAITS);
    await laptop.open("make meanwhile");
    await laptop.answer("Reject");
    await pushes.shows();
    await laptop.context.close();
  });

  test("if wanted, one says who asks and what for, and rejects with a signature that the machine verifies", async () => {
    await openPage("#/devices");
    const shows = dana.page.getByRole("checkbox", { name: "Show what is asked in notifications" });
    await shows.check();
    await until("it is kept", () => shows.isEnabled());
    const built = await robot.ask({
      payload: robot.command(["rm", "-rf", "/srv"], { ...WHO, effects: [{ effect: "deletes", detail: "/srv" }] }),
    });
    await closePage();
    await pushes.deliver("dana", "request", built.requestId);
    expect(await pushes.shows("Deletes /srv")).toEqual([
      { title: "Dangerous · shop", body: "Deletes /srv", actions: ["Open", "Reject"] },
    ]);
    expect(await pushes.tap("reject")).toEqual([]);
    expect(await robot.decision(built)).toMatchObject({
      outcome: "reject",
      words: { shown: "one sentence, in a notification" },
    });

    // The same with the real tool, which ends with the code of a rejection.
    await openPage();
    const running = vm.start("exec", "--", "touch", "never.txt");
    const card = await dana.card("touch never.txt");
    const id = decodeURIComponent((await card.getAttribute("href"))?.split("/").at(-1) ?? "");
    await closePage();
    await pushes.deliver("dana", "request", id);
    const [notice] = await until("a notification", async () => {
      const shown = await pushes.shown();
      return shown.length === 0 ? undefined : shown;
    });
    expect(notice?.actions).toEqual(["Open", "Reject"]);
    await pushes.tap("reject");
    expect(await running.ended).toBe(81);
    await pushes.shows();
    await openPage("#/history");
    await dana.page.locator(".row", { hasText: "touch never.txt" }).getByText("Rejected").first().waitFor();
  });

  test("quiet hours are kept at the gateway; a test that the service can't get says why", async () => {
    await openPage("#/devices");
    const quiet = dana.page.locator("details", { hasText: "Quiet hours" });
    await quiet.locator("summary").click();
    await quiet.getByLabel("From").fill("21:30");
    await dana.tap(quiet.getByRole("button", { name: "Save" }));
    await quiet.getByText("21:30 to 07:00").waitFor();
    await dana.shot("notify-quiet");
    await openPage("#/devices");
    await quiet.getByText("21:30 to 07:00").waitFor();
    await quiet.locator("summary").click();
    await dana.tap(quiet.getByRole("button", { name: "No quiet hours" }));
    await quiet.getByText("None").waitFor();
    const phone = dana.page.locator("details", { hasText: "this phone" });
    if ((await phone.getAttribute("open")) === null) await phone.locator("summary").click();
    const test = phone.getByRole("button", { name: "Send a test" });
    await dana.tap(test);
    await phone.locator(".pair .problem", { hasText: "The test didn't get through. See above." }).waitFor();
    await phone.getByText("The relay can't reach the push service.", { exact: false }).waitFor();
    await dana.shot("notify-test");
  });

  test("a rejection that comes too late says what happened", async () => {
    const built = await robot.ask({ payload: robot.command(["make", "late"], WHO) });
    await closePage();
    await pushes.deliver("dana", "request", built.requestId);
    await until("a notification", async () => (await pushes.shown()).length > 0);
    await robot.withdraw(built);
    await pushes.tap("reject");
    await pushes.shows("Its machine had taken it back. Your answer was not needed.");
    expect(await pushes.tap()).toEqual([`/#/request/${built.requestId}`]);
  });
});

describe("notifications that stop", () => {
  test("because permission was revoked: it is said, and repaired when it is given again", async () => {
    await openPage();
    await setPermission("denied");
    await openPage();
    await dana.page.getByText("This phone isn't being notified.").first().waitFor();
    await dana.shot("notify-bar");
    await dana.page.getByRole("link", { name: "Fix it" }).first().click();
    await dana.page.getByText("Your browser blocks notifications from this page").waitFor();
    await dana.shot("notify-blocked");
    expect(await axe(dana)).toEqual([]);
    await dana.page.getByRole("link", { name: "If nothing appears" }).click();
    await dana.page.getByRole("heading", { name: "When a device stays silent" }).waitFor();
    await dana.shot("notify-silent");
    await dana.page.goBack();
    await dana.page.getByText("Your browser blocks notifications from this page").waitFor();
    await dana.settle();
    await setPermission("granted");
    await dana.press("Check again");
    await dana.page.locator("summary", { hasText: "this phone" }).waitFor();
  });

  test("because the push service gave another address: registered again at the next start, and said", async () => {
    const before = registered.length;
    await dana.page.evaluate(() => {
      const kept = JSON.parse(localStorage.getItem("test.push-service") ?? "{}") as object;
      const endpoint = "https://push.invalid/moved";
      localStorage.setItem("test.push-service", JSON.stringify({ ...kept, endpoint }));
    });
    await openPage();
    await dana.page.getByText("Notifications had stopped on this device. They work again.").first().waitFor();
    expect(registered.slice(before).map(({ endpoint }) => endpoint)).toEqual(["https://push.invalid/moved"]);
    await openPage();
    expect(registered.length).toBe(before + 1);
  });

  test("because the push service says so to the worker: registered again without the page", async () => {
    await closePage();
    const [moved] = registered.slice(-1);
    await (await pushes.worker()).evaluate(
      async (kept) => {
        const scope = globalThis as unknown as {
          registration: ServiceWorkerRegistration;
          dispatchEvent(event: Event): boolean;
        };
        const made = { ...kept, toJSON: () => ({ keys: kept.keys }) };
        Object.defineProperty(scope.registration, "pushManager", { value: { subscribe: async () => made } });
        const work: Promise<unknown>[] = [];
        const event = new Event("pushsubscriptionchange");
        Object.defineProperty(event, "waitUntil", { value: (promise: Promise<unknown>) => work.push(promise) });
        scope.dispatchEvent(event);
        await Promise.all(work);
      },
      { endpoint: "https://push.invalid/changed", keys: (moved as unknown as { keys: object }).keys },
    );
    expect(registered.at(-1)).toMatchObject({ endpoint: "https://push.invalid/changed", label: "dana's phone" });
  });

  test("because the person stops them: the gateway and the browser forget this device", async () => {
    const fold = await thisPhone();
    // One that does not work is open already.
    if ((await fold.getAttribute("open")) === null) await fold.locator("summary").click();
    const stop = dana.page.getByRole("button", { name: "Stop notifying" });
    await dana.tap(stop);
    await dana.page.getByRole("button", { name: "Notify this phone" }).waitFor();
    expect(await dana.page.evaluate(() => localStorage.getItem("test.push-service"))).toBeNull();
    const asked = stage.front.asked.length;
    await openPage("#/devices");
    await dana.page.getByRole("button", { name: "Notify this phone" }).waitFor();
    expect(stage.front.asked.slice(asked).filter((path) => path.includes("/channels/"))).toEqual([]);
  });

  test("or never began, because permission was denied: what to do is said", async () => {
    await setPermission("denied");
    await openPage("#/devices");
    await dana.page.getByText("Your browser blocks notifications from this page").waitFor();
    await dana.page.getByText("Tap the icon beside the address", { exact: false }).waitFor();
    expect(await dana.page.getByRole("button", { name: "Notify this phone" }).count()).toBe(0);
  });

  test("nothing went wrong in the page, and nothing came from elsewhere", () => {
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
