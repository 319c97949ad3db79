// People who use a keyboard, a screen reader or the dark: axe finds nothing on any screen.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { axe } from "./axe.ts";
import { DESK, type Person, PHONE } from "./browser.ts";
import type { Robot } from "./robot.ts";
import { Scene } from "./scene.ts";

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

  test("nothing went wrong in the page", () => {
    expect(dana.problems).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
