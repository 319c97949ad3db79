// A gateway that lies to the page: swapped keys, changed and foreign ciphertexts, markup and look-alikes in every string.
// Nothing executes, and nothing is signed that was not shown.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import type { Person } from "./browser.ts";
import { Robot } from "./robot.ts";
import { Scene } from "./scene.ts";
import { until } from "./stage.ts";

const scene = new Scene();
const { stage } = scene;
let dana: Person;
let robot: Robot;
let stranger: Robot;

/** Markup that executes wherever it is taken for such, then characters that hide, turn and imitate. */
const MARKUP =
  '"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg onload=window.hacked=1>javascript:window.hacked=1';
const ODD = `${MARKUP}\u202egnp.exe\u200b\u2066m\u0430in\u2069${"e\u0301".repeat(3)}`;

beforeAll(async () => {
  await scene.start();
  ({ dana, robot } = scene);
  stranger = await Robot.join(stage, "stranger");
});
afterAll(() => scene.end());

const isHacked = (): Promise<boolean> => dana.page.evaluate(() => "hacked" in window);
const hidden = async (): Promise<string[]> =>
  dana.page.evaluate(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found: string[] = [];
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      if (/[\u200b-\u200f\u202a-\u202e\u2066-\u2069\u0430]/.test(node.textContent ?? ""))
        found.push(node.textContent ?? "");
    }
    return found;
  });

describe("a gateway that lies", () => {
  test("markup and look-alikes in every string of a request are shown, and do nothing", async () => {
    const files = [{ path: `x${ODD}`, status: "added", added: 1, removed: 0, resultDigest: "0".repeat(64) }];
    const requests = [
      robot.ask({
        payload: robot.command(["echo", ODD], {
          cwd: `/home/${ODD}`,
          env: [{ name: ODD.replaceAll("=", "-"), value: ODD }],
          baseRevision: ODD,
          effects: [{ effect: "network", detail: ODD }],
        }),
        repoName: ODD,
        session: `s${ODD}`,
      }),
      robot.ask({
        artifactType: "patch.review",
        payload: JSON.stringify({
          schema: "org.proto.payload",
          version: 1,
          diff: `--- /dev/null\n+++ b/x${ODD}\n@@ -0,0 +1 @@\n+${ODD}\n`,
          files,
          effects: [],
        }),
      }),
      robot.ask({
        artifactType: "plan.review",
        payload: JSON.stringify({
          schema: "org.proto.payload",
          version: 1,
          text: `# ${ODD}\n\n${ODD}\n[x](javascript:window.hacked=1)\n`,
          steps: [ODD],
        }),
      }),
      robot.ask({
        artifactType: "checkpoint.review",
        payload: JSON.stringify({ schema: "org.proto.payload", version: 1, summary: ODD, changes: [ODD] }),
        actions: [{ id: "a", caption: ODD, style: "primary", decision: "reject" }],
      }),
      robot.ask({ payload: JSON.stringify({ [ODD]: ODD }) }),
    ];
    for (const built of await Promise.all(requests)) {
      await dana.page.goto(`${stage.url}/#/request/${encodeURIComponent(built.requestId)}`);
      await dana.page.locator(".answer-bar").waitFor();
      await dana.page.locator(".pane").getByText("⟨U+202E⟩").first().waitFor();
      expect(await hidden()).toEqual([]);
      expect(await isHacked()).toBe(false);
      expect(await dana.page.locator("img, body script:not([src]), iframe, a[href^='javascript']").count()).toBe(0);
      if (built === (await requests[0])) await dana.shot("look-alikes");
      await robot.withdraw(built);
    }
    await dana.page.goto(`${stage.url}/#/`);
  });

  test("changed ciphertexts, foreign requests and other people's are shown as what they are, and can't be answered", async () => {
    const built = await robot.ask({ payload: robot.command(["make", "honest"]) });
    const other = await robot.ask({ payload: robot.command(["make", "other"]) });
    await stranger.pair();
    const lies: readonly [string, (body: string) => string][] = [
      [
        "a changed content",
        (body) => body.replace(/"content":"(.)/g, (_, first: string) => `"content":"${first === "A" ? "B" : "A"}`),
      ],
      ["another hash", (body) => body.replaceAll(built.artifactHash, other.artifactHash)],
      ["another id", (body) => body.replaceAll(built.requestId, `${built.requestId}x`)],
      ["another time", (body) => body.replace(/"expiresAt":"20/g, '"expiresAt":"21')],
      ["another type", (body) => body.replaceAll("command.review", "plan.review")],
      ["an open content", (body) => body.replace(/"ciphertext":\{/g, '"payload":{')],
      ["another enforcer", (body) => body.replaceAll('"enforcerId":"build-1"', '"enforcerId":"stranger"')],
    ];
    for (const [name, lie] of lies) {
      stage.front.tamper = (path, body) => (path.includes("/inbox") ? lie(body) : body);
      stage.front.hasSockets = false;
      await dana.page.goto("about:blank");
      await dana.page.goto(`${stage.url}/#/`);
      const refused = dana.page.locator(".card.broken", { hasText: "What can't be opened can't be approved." });
      await until(name, async () => (await refused.count()) > 0);
      await dana.page.goto(
        `${stage.url}/#/request/${encodeURIComponent(name === "another id" ? `${built.requestId}x` : built.requestId)}`,
      );
      await dana.settle();
      expect(await dana.page.getByRole("button", { name: /^(Approve|Hold|Reject)/ }).count(), name).toBe(0);
    }
    stage.front.tamper = undefined;
    stage.front.hasSockets = true;
    expect(await robot.isUndecided(built)).toBe(true);
    expect(await robot.isUndecided(other)).toBe(true);
    await robot.withdraw(built);
    await robot.withdraw(other);
  });

  test("a request that changes while it is open: what is signed is what was shown", async () => {
    const built = await robot.ask({ payload: robot.command(["make", "shown"]) });
    const swapped = await robot.ask({ payload: robot.command(["make", "swapped"]) });
    await dana.page.goto("about:blank");
    await dana.page.goto(`${stage.url}/#/`);
    await dana.open("make shown");
    // From now on the gateway lists the other request in its place.
    stage.front.tamper = (path, body) =>
      path.includes("/inbox")
        ? body
            .replaceAll(built.requestId, "\u0000")
            .replaceAll(swapped.requestId, built.requestId)
            .replaceAll("\u0000", swapped.requestId)
        : body;
    await dana.page.evaluate(() => window.dispatchEvent(new Event("online")));
    await dana.page.waitForTimeout(1_000);
    expect(await dana.page.locator(".exact .line.shell").allTextContents()).toEqual(["make shown"]);
    await dana.press(/^Approve/);
    stage.front.tamper = undefined;
    const decision = await robot.decision(built);
    expect(decision).toMatchObject({ outcome: "approve" });
    expect(decision.source).toContain(built.artifactHash);
    expect(await robot.isUndecided(swapped)).toBe(true);
    await robot.withdraw(swapped);
  });

  test("swapped keys while pairing are a full-screen stop, and nothing is pinned", async () => {
    const { link } = await stranger.pair();
    const evil = await stranger.withNewKeys();
    const { formatBundle } = await import("../src/protocol/index.ts");
    stage.front.tamper = (path, body) =>
      path.includes("/pairing/resolve")
        ? body.replace(formatBundle(stranger.device.keys.bundle), formatBundle(evil.device.keys.bundle))
        : body;
    await dana.page.goto(link);
    await dana.press("Connect");
    await dana.page.getByRole("heading", { name: /^Stop\. / }).waitFor();
    await dana.shot("stop");
    stage.front.tamper = undefined;
    await dana.press("Keep it blocked");
    await dana.page.goto(`${stage.url}/#/devices`);
    expect(await dana.page.locator("summary", { hasText: "stranger" }).count()).toBe(0);
  });

  test("a machine with other keys than before is a full-screen stop", async () => {
    const again = await robot.withNewKeys();
    const { link } = await again.pair();
    await dana.page.goto(link);
    await dana.press("Connect");
    await dana.page.getByRole("heading", { name: /^Stop\. / }).waitFor();
    await dana.press("Keep it blocked");
    again.pins = robot.pins;
    const forged = await again.ask({ payload: again.command(["make", "forged"]) });
    await dana.page.getByRole("heading", { name: /^Stop\. / }).waitFor();
    await dana.page.locator("summary", { hasText: "both keys, in digits" }).click();
    const digits = await dana.page.locator(".stop .digits").allInnerTexts();
    const { fingerprintDigits } = await import("../src/protocol/index.ts");
    const plain = digits.map((text) => text.replace(/\s+/g, " ").trim());
    expect(plain).toEqual([robot, again].map(({ device }) => fingerprintDigits(device.keys.bundle)));
    await dana.shot("stop-keys");
    await dana.press(/^Pair with build-1 again/);
    await dana.page.getByRole("heading", { name: "Pair a machine" }).waitFor();
    await dana.page.goto(`${stage.url}/#/`);
    await dana.page.locator(".card.broken").waitFor();
    expect(await robot.isUndecided(forged)).toBe(true);
  });

  test("a foreign page can't be put into this one, and no code came in", async () => {
    expect(await isHacked()).toBe(false);
    expect(dana.problems.filter((problem) => !problem.includes("Content Security Policy"))).toEqual([]);
    expect(dana.foreign).toEqual([]);
  });
});
