// The worker of the page: what it shows for a push, and a rejection from a notification.

import { afterEach, describe, expect, test, vi } from "vitest";

import { readProfile } from "../src/keys/record.ts";
import { type NoticeData, placeOf } from "../src/notices/notice.ts";
import { rejectShown } from "../src/notices/reject.ts";
import { resubscribe } from "../src/notices/resubscribe.ts";
import { pushed } from "../src/notices/show.ts";
import type { SentRecord } from "../src/page/sent.ts";
import { newPin, Pins } from "../src/protocol/pins.ts";
import { verifyDecision } from "../src/protocol/reply.ts";
import type { BuiltRequest } from "../src/protocol/request.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { notices } from "../src/texts/notices.ts";
import { newDevice, Random } from "./random.ts";
import { Ringing } from "./ringing.ts";

const ON = { showsRequests: true };
const WHO = { agent: "Claude Code", project: "shop" };
const FIXED = { title: "Countersign", body: "A request is waiting." };
const RECEIPTS = /\/notifications\/receipts$/;

afterEach(() => vi.unstubAllGlobals());

describe("a push", () => {
  test("shows one fixed text, and the gateway learns that it was displayed", async () => {
    const ringing = await Ringing.start();
    const built = await ringing.ask(WHO);
    await pushed(ringing.push("request", built), ringing.site);
    expect(ringing.shown).toMatchObject([{ ...FIXED, actions: [{ action: "open", title: "Open" }] }]);
    const receipt = { channel: "phone-1", event: "displayed", requestIds: [built.requestId] };
    expect(ringing.told(RECEIPTS)).toEqual([receipt]);
    // Nothing was fetched to show it.
    expect(ringing.sent.length).toBe(1);
  });

  test("is shown whatever it says, and however the storage is", async () => {
    const ringing = await Ringing.start(ON);
    for (const text of [undefined, "", "{", "null", '{"countersign":{"kind":"request"}}']) {
      ringing.shown = [];
      await pushed(text, ringing.site);
      expect(ringing.shown).toMatchObject([FIXED]);
    }
    await ringing.database.destroy();
    ringing.shown = [];
    await pushed(ringing.push("request"), ringing.site);
    expect(ringing.shown).toMatchObject([FIXED]);
    expect(ringing.sent).toEqual([]);
  });

  test("that is a test says so, and is not taken for a request", async () => {
    const ringing = await Ringing.start(ON);
    const built = await ringing.ask(WHO);
    await pushed(ringing.push("request", built), ringing.site);
    await pushed(ringing.push("test"), ringing.site);
    expect(ringing.shown.map(({ body }) => body)).toEqual(["Runs a command", notices.testNotice]);
  });

  test("without a network still shows something", async () => {
    const ringing = await Ringing.start(ON);
    ringing.answer = () => Promise.reject(new Error("no network"));
    vi.stubGlobal("setTimeout", quick(setTimeout));
    await pushed(ringing.push("request", await ringing.ask()), ringing.site);
    expect(ringing.shown).toMatchObject([FIXED]);
  });
});

/** Timers that take a hundredth of their time. */
function quick(timer: typeof setTimeout): typeof setTimeout {
  return ((run: () => void, millis = 0) => timer(run, millis / 100)) as typeof setTimeout;
}

describe("a push to somebody who wants to see what is asked", () => {
  test("says who asks and what happens, with a button to reject", async () => {
    const ringing = await Ringing.start(ON);
    await pushed(ringing.push("request", await ringing.ask(WHO)), ringing.site);
    expect(ringing.shown).toMatchObject([{ title: "Claude Code · shop", body: "Runs a command" }]);
    expect(ringing.shown[0]?.actions.map(({ title }) => title)).toEqual(["Open", "Reject"]);
  });

  test("says that it is dangerous instead of the agent's name", async () => {
    const ringing = await Ringing.start(ON);
    const harm = { ...WHO, effects: [{ effect: "deletes", detail: "/srv" }] };
    await pushed(ringing.push("request", await ringing.ask(harm)), ringing.site);
    expect(ringing.shown).toMatchObject([{ title: "Dangerous · shop", body: "Deletes /srv" }]);
  });

  test("shows names of others so that nothing in them is hidden", async () => {
    const ringing = await Ringing.start(ON);
    const payload = { agent: "Claude\u202eedoC", project: "shop\nDangerous" };
    await pushed(ringing.push("request", await ringing.ask(payload)), ringing.site);
    expect(ringing.shown[0]?.title).toBe("Claude⟨U+202E⟩edoC · shop Dangerous");
  });

  test("is one for each session, about its newest request", async () => {
    const ringing = await Ringing.start(ON);
    const one = await ringing.ask({ ...WHO, argv: ["a"] }, { session: "s1" });
    const other = await ringing.ask({ agent: "Codex", project: "api" }, { session: "s2" });
    await pushed(ringing.push("request", other, one), ringing.site);
    expect(ringing.shown.map(({ title }) => title)).toEqual(["Claude Code · shop", "Codex · api"]);
    const newer = await ringing.ask({ ...WHO, effects: [{ effect: "tests" }] }, { session: "s1" });
    await pushed(ringing.push("request", newer, other, one), ringing.site);
    expect(ringing.shown.map(({ title }) => title)).toEqual(["Codex · api", "Claude Code · shop"]);
    expect(ringing.shown[1]).toMatchObject({ body: "Runs this project's tests" });
    expect(ringing.shown[1]?.data.shown?.requestId).toBe(newer.requestId);
  });

  test("does not bring back what was dismissed, and shows something for a push that comes twice", async () => {
    const ringing = await Ringing.start(ON);
    const one = await ringing.ask(WHO, { session: "s1" });
    await pushed(ringing.push("request", one), ringing.site);
    ringing.shown = [];
    const other = await ringing.ask({ agent: "Codex", project: "api" }, { session: "s2" });
    await pushed(ringing.push("request", other, one), ringing.site);
    expect(ringing.shown.map(({ title }) => title)).toEqual(["Codex · api"]);
    ringing.shown = [];
    await pushed(ringing.push("request", other, one), ringing.site);
    expect(ringing.shown.map(({ title }) => title)).toEqual(["Codex · api"]);
  });

  test("closes what was answered elsewhere", async () => {
    const ringing = await Ringing.start(ON);
    const one = await ringing.ask(WHO, { session: "s1" });
    await pushed(ringing.push("request", one), ringing.site);
    ringing.inbox = [];
    const other = await ringing.ask({ agent: "Codex", project: "api" }, { session: "s2" });
    await pushed(ringing.push("request", other), ringing.site);
    expect(ringing.shown.map(({ title }) => title)).toEqual(["Codex · api"]);
  });

  test("keeps what still waits, though a newer push does not name it", async () => {
    const ringing = await Ringing.start(ON);
    const one = await ringing.ask(WHO, { session: "s1" });
    await pushed(ringing.push("request", one), ringing.site);
    const [before] = ringing.shown.map(({ title }) => title);
    const other = await ringing.ask({ agent: "Codex", project: "api" }, { session: "s2" });
    await pushed(ringing.push("request", other), ringing.site);
    expect(ringing.shown.map(({ title }) => title)).toEqual([before, "Codex · api"]);
  });

  test("says the fixed text when it takes more than three seconds", async () => {
    const ringing = await Ringing.start(ON);
    ringing.answer = (call) => (call.startsWith("GET ") ? new Promise<Response>(() => undefined) : undefined);
    const began = Date.now();
    await pushed(ringing.push("request", await ringing.ask(WHO)), ringing.site);
    expect(ringing.shown).toMatchObject([FIXED]);
    expect(Date.now() - began).toBeLessThan(6_000);
    expect(ringing.told(RECEIPTS).length).toBe(1);
  });

  test("says the fixed text for a push to somebody else, and for what can't be opened here", async () => {
    const ringing = await Ringing.start(ON);
    const built = await ringing.ask(WHO);
    await pushed(ringing.push("request", built).replace('"ada"', '"eve"'), ringing.site);
    expect(ringing.shown).toMatchObject([FIXED]);
    expect(ringing.sent).toEqual([]);
    ringing.inbox = [];
    const stranger = await newDevice(new Random(8), "stranger");
    await pushed(ringing.push("request", await ringing.ask(WHO, {}, stranger)), ringing.site);
    expect(ringing.shown).toMatchObject([FIXED]);
  });

  test("says stop when a machine's key has changed", async () => {
    const ringing = await Ringing.start(ON);
    const imposter = await newDevice(new Random(8), "robot");
    await pushed(ringing.push("request", await ringing.ask(WHO, {}, imposter)), ringing.site);
    expect(ringing.shown).toMatchObject([{ title: "Countersign", body: notices.keyChangedNotice }]);
    expect(ringing.shown[0]?.actions.map(({ title }) => title)).toEqual(["Open"]);
  });
});

describe("Reject in a notification", () => {
  async function shown(ringing: Ringing, payload: object = WHO): Promise<[BuiltRequest, NoticeData]> {
    const built = await ringing.ask(payload);
    await pushed(ringing.push("request", built), ringing.site);
    const [notice] = ringing.shown;
    if (notice === undefined) throw new Error("nothing is shown");
    ringing.shown = [];
    return [built, notice.data];
  }
  const DECISIONS = /^POST \/v1\/decisions$/;
  const records = async (ringing: Ringing) => (await ringing.database.allSent()) as SentRecord[];

  test("is signed by this device, sent, and kept for the page", async () => {
    const ringing = await Ringing.start(ON);
    const [built, data] = await shown(ringing);
    await rejectShown(data, ringing.site);
    expect(ringing.shown).toEqual([]);
    const [envelope] = ringing.told(DECISIONS) as { body: object }[];
    const now = Timestamp.ofMillis(Date.now());
    const pins = new Pins().add(newPin({ role: "approver", id: "ada" }, ringing.keys.bundle, now));
    const verified = await verifyDecision(JSON.stringify(envelope?.body), built, ringing.robot, pins, now);
    expect(verified).toMatchObject({ outcome: "reject", words: { shown: notices.shownInNotice } });
    expect(await records(ringing)).toMatchObject([{ requestId: built.requestId, outcome: "reject" }]);
    expect((await records(ringing))[0]?.acceptedAt).toBeDefined();
  });

  test("that does not arrive says so, and can be sent again by the page", async () => {
    const ringing = await Ringing.start(ON);
    const [built, data] = await shown(ringing);
    ringing.answer = (call) => (DECISIONS.test(call) ? new Response("{}", { status: 400 }) : undefined);
    await rejectShown(data, ringing.site);
    expect(ringing.shown).toMatchObject([{ title: "Countersign", body: notices.rejectFailed }]);
    expect(placeOf(ringing.shown[0]?.data ?? data)).toBe(`#/request/${built.requestId}`);
    expect((await records(ringing))[0]?.failed?.kind).toBe("refused");
  });

  test("signs nothing else than what was shown", async () => {
    const ringing = await Ringing.start(ON);
    const [, data] = await shown(ringing);
    const other = { ...data, shown: { requestId: data.shown?.requestId ?? "", artifactHash: "0".repeat(64) } };
    await rejectShown(other, ringing.site);
    await rejectShown({ ...data, shown: undefined } as unknown as NoticeData, ringing.site);
    expect(ringing.shown.map(({ body }) => body)).toEqual([notices.rejectFailed, notices.rejectFailed]);
    expect(ringing.told(DECISIONS)).toEqual([]);
  });

  test("is signed once: a second tap, or an answer on the page, changes nothing", async () => {
    const ringing = await Ringing.start(ON);
    const [, data] = await shown(ringing);
    await rejectShown(data, ringing.site);
    const before = await records(ringing);
    await rejectShown(data, ringing.site);
    expect(ringing.told(DECISIONS).length).toBe(1);
    expect(await records(ringing)).toEqual(before);
  });

  test.each([
    ["decided", notices.rejectEnded.answered],
    ["expired", notices.rejectEnded.expired],
    ["withdrawn", notices.rejectEnded.withdrawn],
    ["cancelled", notices.rejectEnded.cancelled],
  ])("of what is %s says what became of it", async (state, words) => {
    const ringing = await Ringing.start(ON);
    const [{ requestId }, data] = await shown(ringing);
    ringing.inbox = [];
    const at = new Date().toISOString();
    const body = { requestId, state, createdAt: at, expiresAt: at };
    const envelope = { msgType: "exchange.status", requestId, createdAt: at, sender: {}, body };
    ringing.answer = (call) =>
      call.startsWith("GET /v1/exchanges/") ? new Response(JSON.stringify(envelope)) : undefined;
    await rejectShown(data, ringing.site);
    expect(ringing.shown).toMatchObject([{ body: words }]);
    expect(ringing.told(DECISIONS)).toEqual([]);
  });
});

test("a tap opens the request if there is one, else the inbox; a test leads to the devices", () => {
  const data = (more: Partial<NoticeData>): NoticeData => ({ kind: "request", channel: "c", requestIds: [], ...more });
  expect(placeOf(data({ requestIds: ["a/b"] }))).toBe("#/request/a%2Fb");
  expect(placeOf(data({ requestIds: ["a", "b"] }))).toBe("#/");
  expect(placeOf(data({ requestIds: ["a", "b"], shown: { requestId: "b", artifactHash: "" } }))).toBe("#/request/b");
  expect(placeOf(data({}))).toBe("#/");
  expect(placeOf(data({ kind: "test" }))).toBe("#/devices");
});

describe("another address of the push service", () => {
  const REGISTERED = { endpoint: "https://push.example/old", vapidKey: "BA", label: "Ada's phone" };
  const subscribe = vi.fn(async () => ({
    endpoint: "https://push.example/new",
    options: { applicationServerKey: null, userVisibleOnly: true },
    toJSON: () => ({ keys: { p256dh: "P", auth: "A" } }),
  }));
  const site = { scope: "https://gw.example/", pushManager: { subscribe } };

  test("is given to the gateway, and remembered", async () => {
    const ringing = await Ringing.start({ registered: REGISTERED });
    await resubscribe(site);
    expect(ringing.sent).toEqual([
      {
        call: `PUT /platform/v1/approvers/ada/notifications/channels/${ringing.keys.fingerprint}`,
        body: {
          kind: "webPush",
          label: "Ada's phone",
          endpoint: "https://push.example/new",
          keys: { p256dh: "P", auth: "A" },
          page: "https://gw.example/",
        },
      },
    ]);
    expect((await readProfile(ringing.database))?.notices?.registered?.endpoint).toBe("https://push.example/new");
  });

  test("is not asked for on a device whose person has stopped notifications", async () => {
    const ringing = await Ringing.start();
    subscribe.mockClear();
    await resubscribe(site);
    expect(subscribe).not.toHaveBeenCalled();
    expect(ringing.sent).toEqual([]);
  });
});
