// People who use a keyboard, a screen reader or the dark: axe finds nothing on any screen.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { axe } from "./axe.ts";
import { DESK, type Person, PHONE } from "./browser.ts";
import { patch, type Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { until } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;
let dana: Person;
let robot: Robot;

beforeAll(async () => {
  await scene.start();
  ({ dana, robot } = scene);
});
afterAll(() => scene.end());

describe("access", () => {
  for (const [name, viewport, colorScheme] of [
    ["phone", PHONE, "light"],
    ["phone-dark", PHONE, "dark"],
    ["desk", DESK, "light"],
    ["desk-dark", DESK, "dark"],
  ] as const) {
    test(`axe finds nothing: ${name}`, async () => {
      await dana.page.setViewportSize(viewport);
      await dana.page.emulateMedia({ colorScheme });
      const effects = [
        { effect: "publishes", detail: "origin main" },
        { effect: "network", detail: "github.com" },
      ];
      const built = [
        await robot.ask({ payload: robot.command(["git", "push", "origin", name], { effects }) }, 280),
        await robot.ask({ payload: robot.command(["cargo", "test", "--workspace", name]) }, 500),
      ];
      await dana.page.getByRole("link", { name: /^Inbox/ }).click();
      await dana.card(`git push origin ${name}`);
      await dana.card(`cargo test --workspace ${name}`);
      await dana.shot(`inbox-${name}`);
      expect(await axe(dana)).toEqual([]);
      await dana.open(`git push origin ${name}`);
      await dana.shot(`review-${name}`);
      expect(await axe(dana)).toEqual([]);
      // CONTRIBUTING: add a screen, step 5
      for (const place of ["history", "devices", "sessions", "pair", "vouch", "recover", "expired"]) {
        await dana.page.goto(`${stage.url}/#/${place}`);
        await dana.settle();
        await dana.shot(`${place}-${name}`);
        expect(await axe(dana), place).toEqual([]);
      }
      for (const one of built) await robot.withdraw(one);
      await dana.page.goto(`${stage.url}/#/`);
    });
  }

  test("on a desk the columns scroll by themselves, the answers stay, and their keys stand on them", async () => {
    await dana.page.setViewportSize(DESK);
    const built = await robot.ask({ artifactType: "patch.review", payload: patch(2, 80) });
    await dana.page.goto(`${stage.url}/#/`);
    await dana.open("src/auth/file0.ts");
    const places = (): Promise<number[]> =>
      dana.page.evaluate(() =>
        [".list", ".column", ".beside", ".pane"].map((place) => document.querySelector(place)?.scrollTop ?? -1),
      );
    const content = await dana.page.locator(".column").boundingBox();
    if (content === null) throw new Error("there is no content");
    await dana.page.mouse.move(content.x + 100, content.y + 100);
    await dana.page.mouse.wheel(0, 600);
    await until("the content has moved", async () => ((await places())[1] ?? 0) > 300);
    expect((await places()).filter((_, at) => at !== 1)).toEqual([0, 0, 0]);
    const [bar, head] = [dana.page.locator(".answer-bar"), dana.page.locator(".review .effect-bar")];
    for (const part of [bar, head]) {
      const box = await part.boundingBox();
      expect(box !== null && box.y >= 0 && box.y + box.height <= DESK.height).toBe(true);
    }
    expect(await bar.locator(".key:visible").allTextContents()).toEqual(["j k", "?", "R", "s", "r", "a", "y"]);
    expect(await axe(dana)).toEqual([]);
    await robot.withdraw(built);
  });

  test("nothing went wrong in the page", () => {
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
