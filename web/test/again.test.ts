// Requests that are asked for again after their time: what is sent, what is shown, and whose word counts.

import { IDBFactory } from "fake-indexeddb";
import { type ComponentChildren, h } from "preact";
import { renderToString } from "preact-render-to-string";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/page/app.ts";
import { type CardEnd, EXPIRED_MILLIS, FADE_MILLIS, Inbox } from "../src/page/inbox.ts";
import { AppContext } from "../src/page/parts.tsx";
import { reviewDocument } from "../src/page/review/document.ts";
import { Timeline } from "../src/page/review/timeline.tsx";
import { HistoryScreen } from "../src/page/screens/history.tsx";
import { InboxScreen } from "../src/page/screens/inbox.tsx";
import { RequestScreen } from "../src/page/screens/request.tsx";
import { changePins } from "../src/page/trust.ts";
import { Approver } from "../src/protocol/approver.ts";
import { CallError, Http } from "../src/protocol/http.ts";
import { newPin } from "../src/protocol/pins.ts";
import { texts } from "../src/texts.ts";
import { Desk, NOW, soon } from "./desk.ts";
import { newDevice, Random } from "./random.ts";

let desk: Desk;
const apps: App[] = [];
beforeAll(async () => {
  vi.stubGlobal("window", { innerWidth: 360, innerHeight: 740, matchMedia: () => ({ matches: false }) });
  vi.stubGlobal("document", { visibilityState: "visible" });
  // Nothing is ever on a screen here.
  vi.stubGlobal("IntersectionObserver", class {});
  desk = await Desk.open();
});
afterAll(() => vi.unstubAllGlobals());
beforeEach(() => {
  desk.now = NOW;
  vi.spyOn(Date, "now").mockImplementation(() => NOW.millis);
});
afterEach(() => {
  for (const app of apps.splice(0)) {
    app.live.stop();
    app.answers.stop();
  }
  vi.restoreAllMocks();
});

/** A page that is open, at a gateway that takes what is asked of it. */
async function page(gateway: Partial<Approver> = {}, factory = new IDBFactory()): Promise<App> {
  const app = await desk.tab(new App(), { refresh: async () => undefined, ...gateway }, factory);
  apps.push(app);
  app.set({ phase: "ready", isOnline: true });
  return app;
}

const drawn = (app: App, screen: ComponentChildren): string =>
  renderToString(h(AppContext.Provider, { value: app, children: screen }));
const inbox = (app: App): string => drawn(app, h(InboxScreen, {}));
const request = (app: App, id: string): string => drawn(app, h(RequestScreen, { id }));

/** A page with a request that has expired. */
async function expired(gateway: Partial<Approver> = {}, factory?: IDBFactory) {
  const app = await page(gateway, factory);
  const card = await desk.card(app);
  app.set({ inbox: new Inbox([card]).end(card.requestId, "expired", NOW.millis) });
  return { app, card };
}

const refused = (status: number, code: string) => () =>
  Promise.reject(new CallError("refused", code, { status, code, retryable: false, retryAfter: undefined }));

describe("what has expired", () => {
  test("can be asked for again, in the list and where it is open; what waits can't", async () => {
    const { app, card } = await expired();
    for (const screen of [inbox(app), request(app, card.requestId)]) {
      expect(screen).toContain(texts.end.expired);
      expect(screen).toContain(`${texts.askAgain}</button>`);
      expect(screen).not.toContain(texts.approve);
    }
    app.set({ isOnline: false });
    expect(inbox(app)).toMatch(/<button[^>]*disabled[^>]*>Ask again/);
    app.set({ isOnline: true, inbox: new Inbox([card]) });
    expect(inbox(app) + request(app, card.requestId)).not.toContain(texts.askAgain);
    for (const end of ["withdrawn", "answered", "cancelled", "hidden", "gone"] as const) {
      app.set({ inbox: new Inbox([card]).end(card.requestId, end, NOW.millis) });
      expect(inbox(app) + request(app, card.requestId), end).not.toContain(texts.askAgain);
    }
  });

  test("stays in the list long enough to be asked for", async () => {
    const { app, card } = await expired();
    const isThere = (millis: number): boolean =>
      app.state.inbox.tick(NOW.millis + millis, undefined).get(card.requestId) !== undefined;
    expect([isThere(FADE_MILLIS + 1), isThere(EXPIRED_MILLIS - 1), isThere(EXPIRED_MILLIS)]).toEqual([
      true,
      true,
      false,
    ]);
    // It does not hold back what comes.
    const other = await desk.card(app);
    expect(app.state.inbox.add(other, true).shown).toHaveLength(2);
  });

  test("is asked for by an envelope to its exchange, without a word that the gateway could read", async () => {
    const calls: [string, unknown][] = [];
    const fetch = async (url: unknown, init?: RequestInit): Promise<Response> => {
      calls.push([`${init?.method} ${url}`, JSON.parse(`${init?.body}`)]);
      return new Response("", { status: 202 });
    };
    const clock = { now: () => NOW, sleep: () => new Promise<void>(() => undefined) };
    const approver = new Approver(new Http({ gateway: "https://gw.example", clock, fetch }), "ada", desk.ada.keys);
    await approver.refresh("a/b");
    const sender = { approverId: "ada" };
    expect(calls).toEqual([
      [
        "POST https://gw.example/v1/exchanges/a%2Fb/refresh",
        { msgType: "refresh.request", requestId: "a/b", createdAt: `${NOW}`, sender, body: {} },
      ],
    ]);
  });

  test("says that it was asked for again, also in another tab and after a restart, for a day", async () => {
    const factory = new IDBFactory();
    const refresh = vi.fn(async () => undefined);
    const { app, card } = await expired({ refresh }, factory);
    await app.again.ask(card.requestId, "robot");
    expect(refresh.mock.calls).toEqual([[card.requestId]]);
    const later = await page({}, factory);
    await later.again.load();
    later.set({ inbox: app.state.inbox });
    for (const screen of [inbox(app), request(app, card.requestId), inbox(later), request(later, card.requestId)]) {
      expect(screen).toContain(texts.askedAgain);
      expect(screen).not.toContain(`${texts.askAgain}</button>`);
    }
    desk.now = NOW.plus(86_400_000);
    expect(inbox(later)).toContain(`${texts.askAgain}</button>`);
  });

  test.each([
    ["the gateway does not have it any more", refused(404, "PROTO_ERR_NOT_FOUND"), texts.askAgainGone],
    ["the gateway can't be reached", () => Promise.reject(new CallError("unreachable", "")), "can't be reached"],
  ])("is not said to be asked for when %s", async (_, refresh, why) => {
    const { app, card } = await expired({ refresh });
    await expect(app.again.ask(card.requestId, "robot")).rejects.toThrow(why);
    expect(inbox(app)).toContain(`${texts.askAgain}</button>`);
  });
});

describe("a request that takes the place of another", () => {
  /** A page with an expired request, at which this arrives. */
  async function replaced(supersedes: (old: string) => string, machine = desk.robot, end?: CardEnd) {
    const listed: Awaited<ReturnType<Desk["request"]>>[] = [];
    const gateway: Partial<Approver> = {
      list: async () => ({ envelopes: [...listed], isComplete: true }),
      acknowledge: async () => undefined,
    };
    const { app, card } = await expired(gateway);
    if (end !== undefined) app.set({ inbox: new Inbox([{ ...card, end, endedAt: Date.now() }]) });
    await changePins(app, (pins) => pins.add(newPin({ role: "enforcer", id: "other" }, other.keys.bundle, NOW)));
    const arriving = await desk.request({ supersedes: supersedes(card.requestId) }, machine);
    listed.push(arriving);
    app.live.start();
    await soon(() => expect(app.state.inbox.get(arriving.requestId)).toBeDefined());
    return { app, old: card.requestId, requestId: arriving.requestId };
  }
  let other: Awaited<ReturnType<typeof newDevice>>;
  beforeAll(async () => {
    other = await newDevice(new Random(9), "other");
  });

  test("says so, and the old one leads to it", async () => {
    const { app, old, requestId } = await replaced((id) => id);
    await soon(() => expect(app.state.again).toEqual([{ requestId: old, enforcerId: "robot", replacedBy: requestId }]));
    // It leaves the list soon, and stays where it is open.
    const left = app.state.inbox.tick(Date.now() + FADE_MILLIS, undefined);
    expect([left.get(old), left.get(requestId)?.end]).toEqual([undefined, undefined]);
    expect(app.state.inbox.tick(Date.now() + FADE_MILLIS, old).get(old)).toBeDefined();
    const link = `<a href="#/request/${requestId}">${texts.replaced}</a>`;
    expect(request(app, old)).toContain(link);
    expect(request(app, old)).not.toContain(texts.askAgain);
    expect(inbox(app)).toContain(link);
    expect(request(app, requestId)).toContain(texts.replaces);
    const opened = app.state.inbox.get(requestId);
    if (opened?.request === undefined || opened.payload === undefined) throw new Error("it was not opened");
    const lines = reviewDocument(opened.request, opened.payload).sections.flatMap((section) => section.lines);
    expect(lines).toContainEqual({ kind: "fact", label: texts.factReplaces, text: old });
  });

  test("counts only in the words of the same machine", async () => {
    const { app, old } = await replaced((id) => id, other);
    await soon(() => expect(app.state.again).toHaveLength(1));
    expect(request(app, old)).toContain(`${texts.askAgain}</button>`);
    expect(inbox(app)).not.toContain(texts.replaced);
    expect(app.state.inbox.get(old)?.endedAt).toBe(NOW.millis);
  });

  test("is not listed beside one that was taken back for a new device, which leads to it where it is open", async () => {
    const { app, old, requestId } = await replaced((id) => id, desk.robot, "withdrawn");
    await soon(() => expect(app.state.again).toHaveLength(1));
    const opened = app.state.inbox.get(requestId)?.request;
    if (opened === undefined) throw new Error("it was not opened");
    expect(app.state.inbox.wasMoved(opened)).toBe(true);
    const left = app.state.inbox.tick(Date.now(), undefined);
    expect([left.get(old), left.get(requestId)?.end, left.pending]).toEqual([undefined, undefined, 1]);
    expect(app.state.inbox.tick(Date.now(), old).get(old)?.end).toBe("withdrawn");
    expect(request(app, old)).toContain(`<a href="#/request/${requestId}">${texts.replaced}</a>`);
  });

  test("does not take another machine's word that one was taken back for a new device", async () => {
    const { app, old, requestId } = await replaced((id) => id, other, "withdrawn");
    const opened = app.state.inbox.get(requestId)?.request;
    if (opened === undefined) throw new Error("it was not opened");
    expect(app.state.inbox.wasMoved(opened)).toBe(false);
    expect(app.state.inbox.tick(Date.now(), undefined).get(old)).toBeDefined();
  });

  test("leaves a request that waits as it is", async () => {
    const app = await page();
    const card = await desk.card(app);
    const next = await desk.card(app, { supersedes: card.requestId });
    app.set({ inbox: new Inbox([card, next]) });
    if (next.request !== undefined) await app.again.heard([next.request]);
    expect(app.state.again).toHaveLength(1);
    expect(inbox(app)).not.toContain(texts.replaced);
    expect(request(app, card.requestId)).toContain('class="button approve"');
  });
});

describe("a late answer", () => {
  test("says that it came too late, and can be asked for again", async () => {
    const { app, card } = await expired({ sendDecision: refused(409, "PROTO_ERR_EXPIRED") });
    app.set({ inbox: new Inbox([card]), sent: new Map() });
    await app.answers.send(await desk.record(card));
    const record = app.state.sent.get(card.requestId);
    if (record === undefined) throw new Error("there is no record");
    expect(record.failed?.kind).toBe("expired");
    const screens = (): string[] => [request(app, card.requestId), drawn(app, h(Timeline, { record }))];
    for (const screen of screens()) {
      expect(screen).toContain(texts.failed.expired);
      expect(screen).toContain(`${texts.askAgain}</button>`);
      expect(screen).not.toContain(texts.stepAccepted);
    }
    expect(texts.failed.expired).toMatch(/^Too late/);
    await app.again.ask(card.requestId, "robot");
    for (const screen of screens()) expect(screen).toContain(texts.askedAgain);
    expect(drawn(app, h(HistoryScreen, {}))).toContain(texts.askedAgain);
  });

  test("that failed for another reason is not asked for again", async () => {
    for (const [status, code] of [
      [409, "AlreadyDecidedConflict"],
      [404, "PROTO_ERR_NOT_FOUND"],
      [403, "PROTO_ERR_SIGNATURE_INVALID"],
    ] as const) {
      const app = await page({ sendDecision: refused(status, code) });
      const card = await desk.card(app);
      await app.answers.send(await desk.record(card));
      const record = app.state.sent.get(card.requestId);
      if (record === undefined) throw new Error("there is no record");
      expect(drawn(app, h(Timeline, { record })), code).not.toContain(texts.askAgain);
    }
  });
});
