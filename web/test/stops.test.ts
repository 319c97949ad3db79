// A changed key stops everything until a person has read it, and nothing that a gateway says silences that for good.

import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/page/app.ts";
import { AppContext } from "../src/page/parts.tsx";
import { StopScreen } from "../src/page/screens/stop.tsx";
import { changePins, stopForPin, stopForSender, stopRead } from "../src/page/trust.ts";
import { fingerprintDigits } from "../src/protocol/keys.ts";
import { newPin, PinError, Pins } from "../src/protocol/pins.ts";
import { OpenError, openRequest } from "../src/protocol/request.ts";
import { texts } from "../src/texts.ts";
import { Desk, NOW, soon } from "./desk.ts";
import { newDevice, Random } from "./random.ts";

const HOUR = 3_600_000;
let desk: Desk;
beforeAll(async () => {
  vi.stubGlobal("window", { innerWidth: 360, innerHeight: 740, matchMedia: () => ({ matches: false }) });
  vi.stubGlobal("document", { visibilityState: "visible" });
  desk = await Desk.open();
});
afterAll(() => vi.unstubAllGlobals());
beforeEach(() => {
  desk.now = NOW;
});

const page = (): Promise<App> => desk.tab(new App(), {});
const other = (key: string, machine = "robot"): OpenError => new OpenError("unknown-sender", machine, undefined, key);
const shown = (app: App): (string | undefined)[] => app.state.stops.map(({ machine }) => machine);
async function read(app: App): Promise<void> {
  const [stop] = app.state.stops;
  if (stop === undefined) throw new Error("there is no stop");
  await stopRead(app, stop);
}

describe("a request with other keys than a trusted machine's", () => {
  test("names the keys that claim to have sealed it", async () => {
    const app = await page();
    const stranger = newPin({ role: "enforcer", id: "robot" }, desk.ada.keys.bundle, NOW);
    const error: unknown = await openRequest(await desk.request(), desk.ada, new Pins().add(stranger), NOW).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ detail: "robot", claimedKey: desk.robot.keys.fingerprint });
    if (error instanceof OpenError) stopForSender(app, error, NOW);
    expect(shown(app)).toEqual(["robot"]);
  });

  test("stops once it is read for these keys only", async () => {
    const app = await page();
    stopForSender(app, other("one"), NOW);
    stopForSender(app, other("one"), NOW);
    expect(shown(app)).toEqual(["robot"]);
    await read(app);
    expect(shown(app)).toEqual([]);
    stopForSender(app, other("one"), NOW.plus(HOUR));
    expect(shown(app)).toEqual([]);
    // Another change, of which nobody has read.
    stopForSender(app, other("two"), NOW.plus(HOUR));
    expect(shown(app)).toEqual(["robot"]);
  });

  test("stops again after a day, and when the clock was set back", async () => {
    const app = await page();
    stopForSender(app, other("one"), NOW);
    await read(app);
    stopForSender(app, other("one"), NOW.plus(24 * HOUR - 1));
    expect(shown(app)).toEqual([]);
    stopForSender(app, other("one"), NOW.plus(-1));
    expect(shown(app)).toEqual(["robot"]);
    await read(app);
    stopForSender(app, other("one"), NOW.plus(24 * HOUR));
    expect(shown(app)).toEqual(["robot"]);
  });

  test("stops again when other keys are trusted than before", async () => {
    const app = await page();
    stopForSender(app, other("one"), NOW);
    await read(app);
    const anew = await newDevice(new Random(5), "robot");
    await changePins(app, (pins) =>
      pins
        .revoke(desk.robot.keys.fingerprint, NOW)
        .add(newPin({ role: "enforcer", id: "robot" }, anew.keys.bundle, NOW)),
    );
    stopForSender(app, other("one"), NOW);
    expect(shown(app)).toEqual(["robot"]);
  });

  test("stops also where an earlier page has noted the machine as read", async () => {
    const app = await page();
    await app.change((profile) => ({ ...profile, readStops: ["sender robot"] }));
    stopForSender(app, other("one"), NOW);
    expect(shown(app)).toEqual(["robot"]);
  });

  test("does not stop for a machine that is not trusted, nor for another reason", async () => {
    const app = await page();
    stopForSender(app, other("one", "nobody"), NOW);
    stopForSender(app, new OpenError("seal", "robot"), NOW);
    stopForSender(app, other("one", ""), NOW);
    expect(shown(app)).toEqual([]);
  });
});

describe("stops that nobody has read", () => {
  const trustSecond = async (app: App): Promise<void> => {
    const second = await newDevice(new Random(6), "second");
    await changePins(app, (pins) => pins.add(newPin({ role: "enforcer", id: "second" }, second.keys.bundle, NOW)));
  };

  test("wait for each other, and none replaces another", async () => {
    const app = await page();
    await trustSecond(app);
    stopForSender(app, other("one"), NOW);
    stopForSender(app, other("one", "second"), NOW);
    stopForPin(app, newPin({ role: "enforcer", id: "third" }, desk.ada.keys.bundle, NOW), new PinError("key-changed"));
    expect(shown(app)).toEqual(["robot", "second", "third"]);
    await read(app);
    await read(app);
    expect(shown(app)).toEqual(["third"]);
    await read(app);
    expect(shown(app)).toEqual([]);
  });

  test("are one for a machine, however many keys a gateway makes up", async () => {
    const app = await page();
    for (let at = 0; at < 300; at += 1) stopForSender(app, other(`key ${at}`), NOW);
    expect(shown(app)).toEqual(["robot"]);
    await read(app);
    stopForSender(app, other("key 299"), NOW);
    expect(shown(app)).toEqual([]);
    // What is forgotten comes again.
    stopForSender(app, other("key 0"), NOW);
    expect(shown(app)).toEqual(["robot"]);
    expect(app.state.profile?.stopsRead).toHaveLength(100);
  });

  test("stay for what has come while a person was reading", async () => {
    const app = await page();
    stopForSender(app, other("one"), NOW);
    const [onScreen] = app.state.stops;
    stopForSender(app, other("two"), NOW);
    if (onScreen !== undefined) await stopRead(app, onScreen);
    expect(shown(app)).toEqual(["robot"]);
    await read(app);
    expect(shown(app)).toEqual([]);
  });
});

test("a request that arrives with other keys is a stop on the screen", async () => {
  const request = await desk.request();
  const app = await desk.tab(new App(), {
    list: async () => ({ envelopes: [request], isComplete: true }),
    acknowledge: async () => undefined,
    receipt: async () => undefined,
  });
  const anew = await newDevice(new Random(5), "robot");
  await changePins(app, (pins) =>
    pins.revoke(desk.robot.keys.fingerprint, NOW).add(newPin({ role: "enforcer", id: "robot" }, anew.keys.bundle, NOW)),
  );
  app.set({ phase: "ready" });
  app.live.start();
  await soon(() => expect(shown(app)).toEqual(["robot"]));
  expect(app.state.stops[0]?.changes[0]).toContain(desk.robot.keys.fingerprint);
  app.live.stop();
  app.answers.stop();
});

describe("the screen of a stop", () => {
  const drawn = (app: App): string => {
    const [stop] = app.state.stops;
    if (stop === undefined) throw new Error("there is no stop");
    const screen = h(AppContext.Provider, { value: app, children: h(StopScreen, { stop }) });
    return renderToString(screen).replace(/<\/span><span>/g, " ");
  };

  test("has both keys in digits, what it can mean, what to do, and a way to pair again", async () => {
    const app = await page();
    const stranger = await newDevice(new Random(6), "robot");
    stopForSender(app, other(stranger.keys.fingerprint), NOW);
    const screen = drawn(app);
    expect(screen).toContain(fingerprintDigits(desk.robot.keys.bundle));
    expect(screen).toContain(fingerprintDigits(stranger.keys.bundle));
    for (const text of [texts.stopMeans, texts.stopDo, texts.stopRead, texts.stopPair("robot")])
      expect(screen).toContain(text);
  });

  test("shows at most three of the keys that are claimed, and nothing that is no key", async () => {
    const app = await page();
    const count = (): number => drawn(app).split(texts.stopClaimed).length - 1;
    stopForSender(app, other("<b>not a key"), NOW);
    expect(count()).toBe(0);
    expect(drawn(app)).not.toContain("not a key");
    for (let seed = 20; seed < 25; seed += 1)
      stopForSender(app, other((await newDevice(new Random(seed), "robot")).keys.fingerprint), NOW);
    expect(count()).toBe(3);
  });
});
