// What is not signed: a second answer of this device, and an answer to a machine that is not trusted any more.

import { IDBFactory } from "fake-indexeddb";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

import type * as Lock from "../src/keys/lock.ts";
import { App } from "../src/page/app.ts";
import { type Card, Inbox, trusted } from "../src/page/inbox.ts";
import { ONCE } from "../src/page/review/offer.ts";
import { type Answer, sign } from "../src/page/review/sign.ts";
import { changedAreas } from "../src/page/state.ts";
import { changePins, lockTold } from "../src/page/trust.ts";
import type { Approver } from "../src/protocol/approver.ts";
import { CallError } from "../src/protocol/http.ts";
import { texts } from "../src/texts.ts";
import { Desk, NOW, soon, status } from "./desk.ts";

/** What happens while the lock of the device is asked. */
const meanwhile = vi.hoisted(() => ({ happens: async (): Promise<void> => undefined }));
vi.mock("../src/keys/lock.ts", async (original) => ({
  ...(await original<typeof Lock>()),
  hasLock: () => meanwhile.happens().then(() => false),
}));

let desk: Desk;
const tabs: App[] = [];
beforeAll(async () => {
  vi.stubGlobal("window", { innerWidth: 360, innerHeight: 740 });
  desk = await Desk.open();
});
afterAll(() => vi.unstubAllGlobals());
beforeEach(() => {
  desk.now = NOW;
});
afterEach(() => {
  for (const app of tabs.splice(0)) app.answers.stop();
  meanwhile.happens = async () => undefined;
});

const answer = (outcome: Answer["outcome"], isSerious = false): Answer => ({
  outcome,
  offer: ONCE,
  reason: "",
  action: undefined,
  shown: { files: 0, ofFiles: 0, lines: 1, ofLines: 1, unread: 0 },
  isSerious,
});

async function tab(gateway: Partial<Approver>, factory = new IDBFactory()): Promise<App> {
  const silent: Partial<Approver> = {
    receipt: async () => undefined,
    status: async (id) => status(id, "pendingApproval"),
    ...gateway,
  };
  const app = await desk.tab(new App(), silent, factory);
  tabs.push(app);
  return app;
}

describe("one device gives one answer to a request", () => {
  test("also while the first one is being sent, and after it was lost", async () => {
    let lose = (): void => undefined;
    const sendDecision = vi.fn(
      () => new Promise<void>((_, reject) => (lose = () => reject(new CallError("unreachable", "gone")))),
    );
    const app = await tab({ sendDecision });
    const card = await desk.card(app);
    app.set({ phase: "ready", inbox: new Inbox([card]), route: { name: "request", id: card.requestId } });
    const before = app.state;
    const first = sign(app, card, answer("approve"));
    await soon(() => expect(sendDecision).toHaveBeenCalledTimes(1));
    // The answer bar has made room for what becomes of the answer, so a tap that was meant for it does nothing.
    expect(changedAreas(before, app.state)).toEqual(["pane"]);
    const signing = vi.spyOn(desk.ada.keys.signer, "sign");
    await expect(sign(app, card, answer("reject"))).rejects.toThrow(texts.answeredBefore);
    lose();
    await first;
    await expect(sign(app, card, answer("reject"))).rejects.toThrow(texts.answeredBefore);
    expect(signing).not.toHaveBeenCalled();
    signing.mockRestore();
    const again = app.answers.sendAgain(card.requestId);
    await soon(() => expect(sendDecision).toHaveBeenCalledTimes(2));
    lose();
    await again;
    const sources = sendDecision.mock.calls.map((call: unknown[]) => (call[0] as { source: string }).source);
    expect(new Set(sources).size).toBe(1);
  });

  test("also in two tabs that do not know of each other, and when both answers were begun", async () => {
    const factory = new IDBFactory();
    const sendDecision = vi.fn(async () => undefined);
    const [one, two] = [await tab({ sendDecision }, factory), await tab({ sendDecision }, factory)];
    const card = await desk.card(one);
    await sign(one, card, answer("approve"));
    await expect(sign(two, card, answer("reject"))).rejects.toThrow(texts.answeredBefore);
    const other = await desk.card(one);
    const both = await Promise.allSettled([sign(one, other, answer("reject")), sign(one, other, answer("approve"))]);
    expect(both.map((result) => result.status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(sendDecision).toHaveBeenCalledTimes(2);
  });
});

describe("a machine that is not trusted any more", () => {
  const revoke = (app: App): Promise<void> =>
    changePins(app, (pins) => pins.revoke(desk.robot.keys.fingerprint, desk.now));

  test("has no card that can be answered, here and in another tab", async () => {
    const app = await tab({});
    const [shown, waiting, ended] = [await desk.card(app), await desk.card(app), await desk.card(app)];
    const inbox = new Inbox([shown, ended], [waiting]).end(ended.requestId, "withdrawn", 0);
    app.set({ phase: "ready", inbox, route: { name: "request", id: shown.requestId } });
    const before = app.state;
    await revoke(app);
    for (const { requestId } of [shown, waiting, ended]) {
      const card = app.state.inbox.get(requestId);
      expect([card?.request, card?.payload, card?.headline]).toEqual([undefined, undefined, ""]);
      expect(card?.error).toMatchObject({ reason: "unknown-sender", detail: "robot" });
    }
    expect(app.state.inbox.get(ended.requestId)?.end).toBe("withdrawn");
    expect(changedAreas(before, app.state)).toEqual(["list", "pane"]);
    // One that was opened before, and arrives or is on the screen now.
    expect(trusted(shown, app.state.pins, NOW).request).toBeUndefined();
    expect(trusted(shown, before.pins, NOW)).toBe(shown);
  });

  test("gets no answer, also when the trust ends while the lock is asked", async () => {
    const sendDecision = vi.fn(async () => undefined);
    const app = await tab({ sendDecision });
    const card: Card = await desk.card(app);
    meanwhile.happens = () => revoke(app);
    await expect(sign(app, card, answer("approve", true))).rejects.toThrow(texts.notTrustedNow);
    await expect(sign(app, card, answer("approve"))).rejects.toThrow(texts.notTrustedNow);
    expect([sendDecision.mock.calls, [...app.state.sent]]).toEqual([[], []]);
  });
});

test("an approval that needs a verified person is not signed for a machine that could not tell", async () => {
  const sendDecision = vi.fn(async () => undefined);
  const app = await tab({ sendDecision });
  const card = await desk.card(app, { needsPerson: true });
  const signing = vi.spyOn(desk.ada.keys.signer, "sign");
  await expect(sign(app, card, answer("approve"))).rejects.toThrow(texts.lockNeeded);
  const lock = { id: Uint8Array.of(1), publicKey: new ArrayBuffer(1), algorithm: -7 };
  await app.change((profile) => ({ ...profile, lock }));
  await expect(sign(app, card, answer("approve"))).rejects.toThrow(texts.lockUnknown);
  await lockTold(app, "another machine");
  await expect(sign(app, card, answer("approve"))).rejects.toThrow(texts.lockUnknown);
  expect(signing).not.toHaveBeenCalled();
  signing.mockRestore();
  // A rejection needs nobody.
  await sign(app, card, answer("reject"));
  expect(sendDecision).toHaveBeenCalledTimes(1);
});
