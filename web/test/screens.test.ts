// Screens as they are drawn first, without a browser.

import { type ComponentChildren, h } from "preact";
import { renderToString } from "preact-render-to-string";
import { beforeAll, expect, test } from "vitest";

import { App } from "../src/page/app.ts";
import { AppContext } from "../src/page/parts.tsx";
import { PromptBox } from "../src/page/screens/prompt.tsx";
import { RecoveryCodeScreen } from "../src/page/screens/recovery.tsx";
import { changePins } from "../src/page/trust.ts";
import { newPin } from "../src/protocol/pins.ts";
import { Desk, NOW } from "./desk.ts";
import { newDevice, Random } from "./random.ts";

let app: App;
beforeAll(async () => {
  app = await (await Desk.open()).tab(new App(), {});
  const other = await newDevice(new Random(9), "other");
  await changePins(app, (pins) => pins.add(newPin({ role: "enforcer", id: "other" }, other.keys.bundle, NOW)));
});

const drawn = (screen: ComponentChildren): string =>
  renderToString(h(AppContext.Provider, { value: app, children: screen }));

test("words for a session can't be sent before its machine is known, nor to another one", () => {
  const box = (sessionId: string | undefined, machine: string | undefined): string =>
    drawn(h(PromptBox, { sessionId, machine }));
  expect(box(undefined, undefined)).toContain("<select");
  expect(box("s", undefined)).not.toContain("<select");
  expect(box("s", "robot")).not.toContain("<select");
});

test("a recovery code is shown with the machines that do not know of it", () => {
  const screen = (untold: string[]): string => drawn(h(RecoveryCodeScreen, { code: "AAAA-BBBB", untold }));
  expect(screen([])).not.toContain("alert");
  expect(screen(["robot", "ot\u202eher"])).toContain("robot, ot<mark>⟨U+202E⟩</mark>her");
});
