// What arrives and ends while the page is open, and what is said about it.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/page/app.ts";
import { Inbox } from "../src/page/inbox.ts";
import { changePins } from "../src/page/trust.ts";
import { Approver, type ExchangeStatus } from "../src/protocol/approver.ts";
import type { Envelope } from "../src/protocol/envelope.ts";
import { CallError } from "../src/protocol/http.ts";
import { Desk, NOW, soon, status } from "./desk.ts";

let desk: Desk;
const apps: App[] = [];
beforeAll(async () => {
  vi.stubGlobal("window", { innerWidth: 360, innerHeight: 740, matchMedia: () => ({ matches: false }) });
  vi.stubGlobal("document", { visibilityState: "visible" });
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
