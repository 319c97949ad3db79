// The page of the interface at /docs.

import { readFileSync } from "node:fs";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { axe } from "./axe.ts";
import { DESK, Person, PHONE } from "./browser.ts";
import { Scene } from "./scene.ts";
import { until } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;

beforeAll(() => scene.open());
afterAll(() => scene.end());

const openapi = JSON.parse(readFileSync(new URL("../../crates/server/openapi.json", import.meta.url), "utf8")) as {
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly summary: string }>>>>;
};

const BACKGROUND = { light: "rgb(245, 245, 242)", dark: "rgb(16, 18, 20)" };

describe.each([
  ["phone", PHONE, "light"],
  ["desk", DESK, "dark"],
] as const)("on a %s", (name, viewport, colorScheme) => {
  test("opens as the gateway serves it, and its links lead to operations", async () => {
    const ada = await Person.open(scene.browser, stage, { viewport, colorScheme });
    const { page } = ada;
    const answer = await page.goto(`${stage.url}/docs`);
    expect(answer?.headers()["content-security-policy"]).toMatch(/; sandbox$/);
    expect([...ada.problems, ...ada.foreign]).toEqual([]);
    await ada.shot(`docs-${name}`);
    // What the driver does by itself would need scripts in the page, so this test looks, and clicks at a place.
    const operations = Object.values(openapi.paths).flatMap((methods) => Object.values(methods));
    expect(operations.length).toBeGreaterThan(40);
    const shown = await page.evaluate(() => ({
      tags: Array.from(document.querySelectorAll("h2"), (heading) => heading.textContent),
      operations: Array.from(document.querySelectorAll(".operation h3"), (heading) => heading.textContent ?? ""),
      // A style sheet that the policy refuses would leave this at its default.
      background: getComputedStyle(document.documentElement).backgroundColor,
      isWide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
    }));
    expect(shown.tags).toEqual(expect.arrayContaining(openapi.tags.map(({ name }) => name)));
    expect(shown.operations.toSorted()).toEqual(operations.map(({ summary }) => summary).toSorted());
    expect(shown).toMatchObject({ background: BACKGROUND[colorScheme], isWide: false });

    const place = await page.evaluate(() => {
      const link = document.querySelector('.overview a[href="#submitArtifact"]');
      link?.scrollIntoView({ block: "center" });
      return link?.getBoundingClientRect().toJSON() as { x: number; y: number; width: number; height: number };
    });
    await page.mouse.click(place.x + place.width / 2, place.y + place.height / 2);
    await until("the operation is on top", () =>
      page.evaluate(
        () =>
          location.hash === "#submitArtifact" &&
          Math.round(document.getElementById("submitArtifact")?.getBoundingClientRect().top ?? 0) === 12,
      ),
    );
    await ada.shot(`docs-${name}-operation`);
    await ada.context.close();
  });

  test("shows the parameters, the schemas and an example of an operation", async () => {
    const ada = await Person.open(scene.browser, stage, { viewport, colorScheme, bypassCSP: true });
    await ada.page.goto(`${stage.url}/docs#submitArtifact`);
    const card = ada.page.locator("#submitArtifact");
    await card.getByRole("listitem").filter({ hasText: "Idempotency-Key in the header · string" }).waitFor();
    await card.getByText("Example: Open, for one approver").click();
    await card.getByText('"artifactType": "command.review"').waitFor();
    await ada.shot(`docs-${name}-example`);
    await card.getByRole("link", { name: "ArtifactSubmitBody" }).click();
    await ada.page.locator("#schema-ArtifactSubmitBody").getByRole("link", { name: "Artifact", exact: true }).click();
    const schema = ada.page.locator("#schema-Artifact");
    await schema.locator("li", { hasText: /^artifactHashAlg required "SHA-256"/ }).waitFor();
    await ada.shot(`docs-${name}-schema`);
    expect([...ada.problems, ...ada.foreign]).toEqual([]);
    await ada.context.close();
  });

  test("axe finds nothing", async () => {
    // It waits for timers, which a page without scripts has not.
    const ada = await Person.open(scene.browser, stage, { viewport, colorScheme, bypassCSP: true });
    await ada.page.goto(`${stage.url}/docs`);
    expect(await axe(ada)).toEqual([]);
    await ada.context.close();
  });
});

test("reaches nothing of the approver's page, which is under the same address", async () => {
  const ada = await Person.open(scene.browser, stage);
  await ada.page.goto(stage.url);
  await ada.page.getByRole("button", { name: "Scan the code" }).waitFor();
  // The worker reads the page once while it is installed, which may end after the page is shown.
  await ada.page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  expect(await ada.page.evaluate(() => indexedDB.databases().then((all) => all.length))).toBeGreaterThan(0);
  const asked = stage.front.asked.length;
  await ada.page.goto(`${stage.url}/docs`);
  // The browser itself looks for a newer worker of the approver's page.
  const others = stage.front.asked.slice(asked).filter((path) => path !== "/docs" && path !== "/sw.js");
  expect(others).toEqual([]);
  expect(await ada.page.evaluate(() => origin)).toBe("null");
  const reached = await ada.page.evaluate(async () => {
    const found: string[] = [];
    const look = async (what: string, action: () => unknown): Promise<void> => {
      try {
        await action();
        found.push(what);
      } catch {
        // It is out of reach, as it should be.
      }
    };
    await look("databases", () => indexedDB.databases());
    await look("storage", () => localStorage.length);
    await look("caches", () => caches.keys());
    await look("calls", () => fetch("/openapi.json"));
    return found;
  });
  expect(reached).toEqual([]);
  // A script that somebody puts into it does not run.
  await ada.page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'ran'";
    document.body.append(script);
  });
  expect(await ada.page.title()).toBe("Countersign gateway: interface");
  await ada.context.close();
});
