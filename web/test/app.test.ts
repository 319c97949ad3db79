// The page as a whole, with another tab of the same browser.

import { IDBFactory } from "fake-indexeddb";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

import { App } from "../src/page/app.ts";
import { Store } from "../src/page/store.ts";
import { Desk, soon } from "./desk.ts";

beforeAll(() => {
  const deaf = { addEventListener: () => undefined, matchMedia: () => ({ matches: false }) };
  vi.stubGlobal("window", deaf);
  vi.stubGlobal("document", { ...deaf, visibilityState: "visible" });
  vi.stubGlobal("location", { hash: "", origin: "https://gw.example" });
  vi.stubGlobal("localStorage", { getItem: () => null });
  vi.stubGlobal("fetch", () => Promise.reject(new Error("no network")));
});
afterAll(() => vi.unstubAllGlobals());

test("what this tab changes while it reads what another tab has changed is not undone", async () => {
  const factory = new IDBFactory();
  const other = await (await Desk.open()).tab(new Store(), {}, factory);
  vi.stubGlobal("indexedDB", factory);
  const app = new App();
  await app.start(undefined);
  expect(app.state.phase).toBe("ready");
  const reading = vi
    .spyOn(app.answers, "reload")
    .mockImplementation(() => app.change((profile) => ({ ...profile, readStops: ["here"] })));
  await other.change((profile) => ({ ...profile, labels: { robot: "robby" } }));
  await soon(() => expect(reading).toHaveBeenCalled());
  await soon(() => expect(app.state.profile?.labels).toEqual({ robot: "robby" }));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(app.state.profile).toMatchObject({ labels: { robot: "robby" }, readStops: ["here"] });
  app.live.stop();
});
