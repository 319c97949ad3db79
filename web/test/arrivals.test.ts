// What arrives and ends while the page is open, and what is said about it.

import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/page/app.ts";
import { Inbox } from "../src/page/inbox.ts";
import { AppContext } from "../src/page/parts.tsx";
import { RequestScreen } from "../src/page/screens/request.tsx";
import { changePins } from "../src/page/trust.ts";
import { Approver, type ExchangeStatus } from "../src/protocol/approver.ts";
import type { Envelope } from "../src/protocol/envelope.ts";
import { CallError } from "../src/protocol/http.ts";
import { texts } from "../src/texts.ts";
import { Desk, NOW, soon, status } from "./desk.ts";
import { FakeSocket } from "./network.ts";

let desk: Desk;
const apps: App[] = [];
beforeAll(async () => {
  vi.stubGlobal("window", { innerWidth: 360, innerHeight: 740, matchMedia: () => ({ matches: false }) });
  vi.stubGlobal("document", { visibilityState: "visible" });
  vi.stubGlobal("WebSocket", FakeSocket);
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

/** A page that is open at a gateway which lists these requests. */
async function open(listed: () => readonly Envelope[], gateway: Partial<Approver>): Promise<App> {
  const silent: Partial<Approver> = {
    list: async () => ({ envelopes: [...listed()], isComplete: true }),
    acknowledge: async () => undefined,
    receipt: async () => undefined,
    ...gateway,
  };
  const app = await desk.tab(new App(), silent);
  apps.push(app);
  app.set({ phase: "ready" });
  app.live.start();
  return app;
}

test("a request that was opened before the trust in its machine ended is one of an unknown sender", async () => {
  const request = await desk.request();
  let isTrusted = true;
  const app = await open(() => [request], {
    async open(this: Approver, envelope, pins) {
      const item = await Approver.prototype.open.call(this, envelope, pins);
      if (isTrusted) await changePins(app, (all) => all.revoke(desk.robot.keys.fingerprint, desk.now));
      isTrusted = false;
      return item;
    },
  });
  const card = () => app.state.inbox.get(request.requestId);
  await soon(() => expect(card()?.error?.reason).toBe("unknown-sender"));
  expect(card()?.request).toBeUndefined();
});

describe("how a card ends", () => {
  test.each<[ExchangeStatus["state"] | undefined, string]>([
    ["pendingApproval", "hidden"],
    ["decided", "answered"],
    ["delivered", "answered"],
    ["expired", "expired"],
    ["withdrawn", "withdrawn"],
    ["cancelled", "cancelled"],
    [undefined, "gone"],
  ])("is the gateway's word: %s", async (state, end) => {
    const request = await desk.request();
    let listed = [request];
    const app = await open(() => listed, {
      status: async (id) => {
        if (state === undefined) throw new CallError("unreachable", "");
        return status(id, state);
      },
    });
    const card = () => app.state.inbox.get(request.requestId);
    await soon(() => expect(card()?.headline).toBe("ls"));
    listed = [];
    await soon(() => expect(card()?.end).toBe(end));
  });

  test.each<[string, () => Promise<ExchangeStatus["state"]>, string]>([
    ["that it was answered in time", async () => "decided", "answered"],
    ["nothing, since its clock is behind", async () => "pendingApproval", "expired"],
    ["nothing, since it can't be reached", () => Promise.reject(new CallError("unreachable", "")), "expired"],
    ["nothing at all", () => new Promise(() => undefined), "expired"],
  ])("after its time, when the gateway says %s", async (_, says, end) => {
    const request = await desk.request();
    const app = await open(() => [request], { status: async (id) => status(id, await says()) });
    const card = () => app.state.inbox.get(request.requestId);
    await soon(() => expect(card()?.headline).toBe("ls"));
    vi.spyOn(Date, "now").mockImplementation(() => NOW.plus(7_200_000).millis);
    await soon(() => expect(card()?.end).toBe(end));
  });

  test("a request that was answered here without a word of it is looked at", async () => {
    const request = await desk.request();
    let [listed, source] = [[request], ""];
    const app = await open(() => listed, {
      sendDecision: () => Promise.reject(new CallError("unreachable", "")),
      status: async (id) => status(id, source === "" ? "pendingApproval" : "decided", source || undefined),
    });
    await soon(() => expect(app.state.inbox.get(request.requestId)).toBeDefined());
    const card = app.state.inbox.get(request.requestId);
    if (card === undefined) throw new Error("there is no card");
    const record = await desk.record(card);
    await app.answers.send(record);
    app.answers.stop();
    expect(app.state.inbox.get(request.requestId)?.end).toBeUndefined();
    [listed, source] = [[], record.source];
    await soon(() => expect(app.state.sent.get(request.requestId)?.acceptedAt).toBeDefined());
    expect(app.state.inbox).toEqual(new Inbox());
  });
});

describe("a request that has ended on another device", () => {
  /** A page over a WebSocket, with a request that is on the screen, and the gateway's word on it. */
  async function shown(isOpen: boolean, gateway: Partial<Approver> = {}) {
    const request = await desk.request();
    const { requestId } = request;
    FakeSocket.all.length = 0;
    const pending = { status: async (id: string) => status(id, "pendingApproval"), ticket: async () => "t" };
    const app = await open(() => [request], { ...pending, ...gateway });
    await soon(() => expect(app.state.inbox.get(requestId)?.headline).toBe("ls"));
    if (isOpen) app.set({ route: { name: "request", id: requestId } });
    const push = (state: string, decision?: object): void => {
      const body = { requestId, state, createdAt: `${NOW}`, expiresAt: `${NOW}`, decision };
      const sender = { gatewayId: "g" };
      const message = { msgId: "s", msgType: "exchange.status", requestId, createdAt: `${NOW}`, sender, body };
      FakeSocket.all.at(-1)?.push(JSON.stringify(message));
    };
    const drawn = (): string =>
      renderToString(h(AppContext.Provider, { value: app, children: h(RequestScreen, { id: requestId }) }));
    return { app, requestId, push, drawn, card: () => app.state.inbox.get(requestId) };
  }
  /** What a gateway would say to make people believe that they have approved. */
  const CLAIM = { decision: "approve", scope: "session", signerKeyId: "ada" };

  test.each(["decided", "delivered"])("leaves the list at once: %s", async (state) => {
    const { app, push, card } = await shown(false);
    expect(app.state.inbox.pending).toBe(1);
    push(state, CLAIM);
    await soon(() => expect(card()).toBeUndefined());
    // Whatever the gateway says of a decision, this device has made none.
    expect([app.state.sent.size, app.state.inbox.pending]).toEqual([0, 0]);
  });

  test.each([
    ["decided", texts.end.answered],
    ["withdrawn", texts.withdrawnBy("robot")],
    ["expired", texts.end.expired],
    ["cancelled", texts.end.cancelled],
  ])("says what became of it while it is open, and has no buttons any more: %s", async (state, end) => {
    const { app, push, card, drawn } = await shown(true);
    expect(drawn()).toMatch(/button (approve|reject)/);
    push(state, CLAIM);
    await soon(() => expect(card()?.end).toBeDefined());
    expect(drawn()).toContain(end);
    expect(drawn()).not.toMatch(/button (approve|reject)/);
    for (const word of [texts.approved, texts.stepSigned.approve, texts.stepAccepted])
      expect(drawn()).not.toContain(`>${word}`);
    expect(app.state.sent.size).toBe(0);
  });

  test("says so in the list for a moment, unless somebody has answered it", async () => {
    for (const state of ["withdrawn", "expired", "cancelled"] as const) {
      const { push, card } = await shown(false);
      push(state);
      await soon(() => expect(card()?.end).toBe(state));
    }
  });

  test("and is being answered here stays the answer of this device, which is looked at", async () => {
    let arrived: (() => void) | undefined;
    const sendDecision = (): Promise<void> => new Promise((resolve) => (arrived = resolve));
    const { app, requestId, push, card } = await shown(true, { sendDecision });
    const own = card();
    if (own === undefined) throw new Error("there is no card");
    const record = await desk.record(own);
    const sending = app.answers.send(record);
    await soon(() => expect(arrived).toBeDefined());
    push("decided", CLAIM);
    await soon(() => expect(card()).toBeUndefined());
    expect(app.state.sent.get(requestId)).toEqual(record);
    arrived?.();
    await sending;
    expect(app.state.sent.get(requestId)?.acceptedAt).toBeDefined();
  });
});
