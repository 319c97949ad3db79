// This device's decisions: what is known of them, also when an answer of the gateway was lost.

import { IDBFactory } from "fake-indexeddb";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

import { Answers } from "../src/page/answers.ts";
import { type Card, Inbox } from "../src/page/inbox.ts";
import { merged, type SentRecord } from "../src/page/sent.ts";
import { Store } from "../src/page/store.ts";
import type { Approver, ExchangeStatus } from "../src/protocol/approver.ts";
import { CallError } from "../src/protocol/http.ts";
import { receiptSession } from "../src/protocol/receipt.ts";
import { Desk, NOW, soon, status } from "./desk.ts";

let desk: Desk;
const opened: Answers[] = [];
beforeAll(async () => {
  desk = await Desk.open();
});
beforeEach(() => {
  desk.now = NOW;
});
afterEach(() => {
  for (const answers of opened.splice(0)) answers.stop();
});

/** A tab, with a gateway that has no receipt. */
async function tab(gateway: Partial<Approver> = {}, factory = new IDBFactory()) {
  const none: Partial<Approver> = { receipt: async () => undefined, ...gateway };
  const store = await desk.tab(new Store(), none, factory);
  const answers = new Answers(store);
  opened.push(answers);
  return { store, answers };
}

const lost = (): Promise<never> => Promise.reject(new CallError("unreachable", "connection lost"));
const stateOf = (store: Store, { requestId }: Card): SentRecord => {
  const record = store.state.sent.get(requestId);
  if (record === undefined) throw new Error("there is no record");
  return record;
};

describe("an answer whose arrival is not known", () => {
  /** Sends an answer whose confirmation is lost, to a gateway that says this of the exchange afterwards. */
  async function sent(says: (record: SentRecord, other: SentRecord) => ExchangeStatus) {
    let word: ExchangeStatus | undefined;
    const asked = vi.fn(async () => word ?? lost());
    const { store, answers } = await tab({ sendDecision: lost, status: asked });
    const card = await desk.card(store);
    store.set({ inbox: new Inbox([card]) });
    await answers.send(await desk.record(card));
    expect(stateOf(store, card).failed?.kind).toBe("unreachable");
    expect(store.state.inbox.get(card.requestId)).toBeDefined();
    word = says(stateOf(store, card), await desk.record(card, "reject"));
    return { store, card, asked };
  }

  test("counts as accepted when the gateway has exactly this decision", async () => {
    const { store, card } = await sent(({ requestId, source }) => status(requestId, "decided", source));
    await soon(() => expect(stateOf(store, card)).toMatchObject({ acceptedAt: expect.any(String) as unknown }));
    expect(stateOf(store, card).failed).toBeUndefined();
    expect(store.state.inbox.get(card.requestId)).toBeUndefined();
  });

  test.each([
    ["another decision", "answered", (other: SentRecord) => status(other.requestId, "delivered", other.source)],
    ["that it expired", "expired", ({ requestId }: SentRecord) => status(requestId, "expired")],
    ["that it was taken back", "withdrawn", ({ requestId }: SentRecord) => status(requestId, "withdrawn")],
    ["that it was cancelled", "cancelled", ({ requestId }: SentRecord) => status(requestId, "cancelled")],
  ] as const)("has failed when the gateway says %s", async (_, kind, says) => {
    const { store, card } = await sent((_own, other) => says(other));
    await soon(() => expect(stateOf(store, card).failed?.kind).toBe(kind));
    expect(stateOf(store, card).acceptedAt).toBeUndefined();
  });

  test("stays unknown while the request waits, and when the decision is not there any more", async () => {
    for (const state of ["pendingApproval", "decided"] as const) {
      const { store, card, asked } = await sent(({ requestId }) => status(requestId, state));
      const before = asked.mock.calls.length;
      await soon(() => expect(asked.mock.calls.length).toBeGreaterThan(before + 3));
      expect(stateOf(store, card).failed?.kind).toBe("unreachable");
    }
  });

  test("is asked about when the page is opened again, also after more than half an hour", async () => {
    const factory = new IDBFactory();
    const { store, answers } = await tab({ sendDecision: lost, status: lost }, factory);
    const card = await desk.card(store);
    await answers.send(await desk.record(card));
    answers.stop();
    desk.now = NOW.plus(3_600_000);
    const { source } = stateOf(store, card);
    const again = await tab({ status: async (id) => status(id, "decided", source) }, factory);
    await again.answers.load();
    await soon(() => expect(stateOf(again.store, card).acceptedAt).toBeDefined());
  });

  test("that another tab has left for a minute is unknown, and is asked about; before that it is being sent", async () => {
    const factory = new IDBFactory();
    const { store } = await tab({}, factory);
    const card = await desk.card(store);
    const record = await desk.record(card);
    await store.database.changeSent(record.requestId, () => record);
    const other = await tab({ status: async (id) => status(id, "decided", record.source) }, factory);
    desk.now = NOW.plus(30_000);
    await other.answers.reload();
    expect(stateOf(other.store, card)).toEqual(record);
    desk.now = NOW.plus(61_000);
    await other.answers.reload();
    expect(stateOf(other.store, card).failed?.kind).toBe("unreachable");
    await soon(() => expect(stateOf(other.store, card).acceptedAt).toBeDefined());
  });
});

test("that a decision was accepted is not undone by what was seen before, or failed since", async () => {
  const { store } = await tab();
  const record = await desk.record(await desk.card(store));
  const accepted: SentRecord = { ...record, acceptedAt: "1" };
  const unknown: SentRecord = { ...record, failed: { kind: "unreachable", text: "" } };
  const late: SentRecord = { ...record, failed: { kind: "expired", text: "" } };
  const done: SentRecord = { ...accepted, receipt: { outcome: { outcome: "applied", exitStatus: 0 }, at: "2" } };
  expect(merged(accepted, unknown)).toEqual(accepted);
  expect(merged(unknown, accepted)).toEqual(accepted);
  expect(merged(late, unknown)).toEqual(late);
  expect(merged(unknown, late)).toEqual(late);
  expect(merged(done, { ...accepted, acceptedAt: "9", receiptFailed: "x" })).toEqual(done);
  expect(merged(record, unknown)).toEqual(unknown);
});

test("an answer that is found at the gateway while it is sent again in vain stays accepted", async () => {
  let isThere = false;
  let lose: (() => void) | undefined;
  const sendDecision = (): Promise<void> =>
    isThere ? new Promise((_, reject) => (lose = () => reject(new CallError("unreachable", "")))) : lost();
  const { store, answers } = await tab({ sendDecision, status: lost });
  const card = await desk.card(store);
  const record = await desk.record(card);
  await answers.send(record);
  answers.stop();
  isThere = true;
  const again = answers.sendAgain(card.requestId);
  await soon(() => expect(lose).toBeDefined());
  Object.assign(store.approver, { status: async (id: string) => status(id, "decided", record.source) });
  await answers.look(card.requestId);
  expect(stateOf(store, card).acceptedAt).toBeDefined();
  lose?.();
  await again;
  expect(stateOf(store, card)).toMatchObject({ acceptedAt: expect.any(String) as unknown });
  expect(stateOf(store, card).failed).toBeUndefined();
});

test("a receipt that comes after hours is found by its session, and when the answer is looked at", async () => {
  const { store, answers } = await tab({ sendDecision: async () => undefined });
  let hasReported = false;
  const outcome = { outcome: "applied", exitStatus: 0 } as const;
  const receipt = async () => (hasReported ? { outcome, at: `${desk.now}` } : undefined);
  Object.assign(store.approver, { status: async (id: string) => status(id, "delivered"), receipt });
  const cards = [await desk.card(store), await desk.card(store)] as const;
  for (const card of cards) await answers.send(await desk.record(card));
  // Nobody looks by himself any more.
  answers.stop();
  desk.now = NOW.plus(10_800_000);
  hasReported = true;
  await answers.heard("another-session");
  expect(stateOf(store, cards[0]).receipt).toBeUndefined();
  await answers.heard(receiptSession(cards[0].requestId, 1));
  expect(stateOf(store, cards[0]).receipt?.outcome).toEqual(outcome);
  expect(stateOf(store, cards[1]).receipt).toBeUndefined();
  await answers.look(cards[1].requestId);
  expect(stateOf(store, cards[1]).receipt?.outcome).toEqual(outcome);
});
