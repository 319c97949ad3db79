// What a machine remembers of a person's answers, and what this device believes of it.

import { describe, expect, test } from "vitest";

import { isHistory } from "../src/page/remembered.ts";
import { HistoryError, historySession, openHistory, type RememberedAnswer } from "../src/protocol/history.ts";
import { parseObject } from "../src/protocol/json.ts";
import type { Pin, Pins } from "../src/protocol/pins.ts";
import type { OpenedSnapshot } from "../src/protocol/session.ts";
import { NOW } from "./desk.ts";

const machine = { party: { role: "enforcer", id: "vm" }, fingerprint: "AAAA" } as unknown as Pin;
const ANSWER = {
  requestId: "r-1",
  at: "2026-11-15T12:00:00Z",
  device: "BBBB",
  decision: "approve",
  scope: "once",
  sentence: "Lists files",
  headline: "ls",
  outcome: { outcome: "applied", exitStatus: 0 },
};

function opened(payload: object, sessionId = historySession("AAAA", "ada"), sentBy = machine): OpenedSnapshot {
  return {
    sessionId,
    snapshotId: "history-1",
    snapshotType: "summary",
    createdAt: NOW,
    payload: parseObject(JSON.stringify(payload)),
    sentBy,
  };
}

const read = (payload: object): RememberedAnswer[] => openHistory(opened(payload), machine, "ada");

describe("what a machine remembers", () => {
  test("is in a session that both ends know", () => {
    // Python: uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_URL, "countersign history v1"), "AAAA/ada")
    expect(historySession("AAAA", "ada")).toBe("7ecde22f-110c-5de5-a626-01369f840d5f");
    const profile = { id: "ada" } as never;
    const pins = { all: [machine] } as unknown as Pins;
    expect(isHistory("7ecde22f-110c-5de5-a626-01369f840d5f", { pins, profile })).toBe(true);
    expect(isHistory("7ecde22f-110c-5de5-a626-01369f840d5e", { pins, profile })).toBe(false);
    expect(isHistory("7ecde22f-110c-5de5-a626-01369f840d5f", { pins, profile: undefined })).toBe(false);
  });

  test("is read with all that is said of an answer", () => {
    const rejected = { ...ANSWER, decision: "reject", reason: "not now", action: "Later", change: "ls -l" };
    const [first, second] = read({ v: 1, approverId: "ada", answers: [ANSWER, rejected] });
    expect(first).toMatchObject({ requestId: "r-1", decision: "approve", reason: undefined, change: undefined });
    expect(second).toMatchObject({ decision: "reject", reason: "not now", action: "Later", change: "ls -l" });
    expect(read({ v: 1, approverId: "ada", answers: [] })).toEqual([]);
    expect(read({ v: 1, approverId: "ada", answers: [{ ...ANSWER, headline: "𝄞".repeat(201) }] })).toHaveLength(1);
  });

  test("of another machine or person, or in another form, is not believed", () => {
    const honest = { v: 1, approverId: "ada", answers: [ANSWER] };
    const { headline: _, ...less } = ANSWER;
    for (const payload of [
      { ...honest, approverId: "eve" },
      { ...honest, v: 2 },
      { ...honest, more: 1 },
      { ...honest, answers: [{ ...ANSWER, more: 1 }] },
      { ...honest, answers: [{ ...ANSWER, decision: "allow" }] },
      { ...honest, answers: [{ ...ANSWER, outcome: { outcome: "done" } }] },
      { ...honest, answers: [less] },
      { v: 1, requestId: "a receipt" },
      { ...honest, answers: [{ ...ANSWER, headline: "𝄞".repeat(202) }] },
      { ...honest, answers: Array.from({ length: 51 }, () => ANSWER) },
    ])
      expect(() => read(payload), JSON.stringify(payload)).toThrow(HistoryError);
    const other = { ...machine, fingerprint: "CCCC" };
    const session = historySession("AAAA", "ada");
    expect(() => openHistory(opened(honest), other, "ada")).toThrow(HistoryError);
    expect(() => openHistory(opened(honest), machine, "eve")).toThrow(HistoryError);
    expect(() => openHistory(opened(honest, "s-1"), machine, "ada")).toThrow(HistoryError);
    expect(() => openHistory(opened(honest, session, other), machine, "ada")).toThrow(HistoryError);
  });
});
