// Sessions: what their snapshots say, and what they are called.

import { describe, expect, test } from "vitest";

import { askerOfSession, isOfAgent, type Known, stateOf, toldBy } from "../src/page/sessions.ts";
import type { Session } from "../src/protocol/approver.ts";
import { parseObject } from "../src/protocol/json.ts";
import type { Pin } from "../src/protocol/pins.ts";
import type { OpenedSnapshot, SnapshotType } from "../src/protocol/session.ts";
import { NOW } from "./desk.ts";

const SESSION: Session = {
  sessionId: "9f3c2d1e-1111-4222-8333-abcdefabcdef",
  enforcerId: "build-1",
  agentHost: "claude-code",
  state: "planning",
  updatedAt: NOW,
  endedAt: undefined,
  snapshots: new Map(),
};
const sentBy = { party: { role: "enforcer", id: "build-1" } } as unknown as Pin;
const snapshot = (snapshotType: SnapshotType, payload: object): OpenedSnapshot => ({
  sessionId: SESSION.sessionId,
  snapshotId: "x",
  snapshotType,
  createdAt: NOW,
  payload: parseObject(JSON.stringify(payload)),
  sentBy,
});
const known = (...snapshots: Known["snapshots"]): Known => ({ session: SESSION, snapshots });

describe("a session", () => {
  test("is called by its task, and never by its id", () => {
    const named = askerOfSession(known(snapshot("context", { task: "Fix\n the login\u202e" })));
    expect(named).toMatchObject({ task: "Fix the login⟨U+202E⟩", agent: "Claude Code", machine: "build-1" });
    for (const untitled of [known(), known(snapshot("context", { task: " " })), undefined])
      expect(askerOfSession(untitled).task).toMatch(/^Untitled task( · last active .*\d\d:\d\d)?$/);
  });

  test("is an agent's if anybody has said that one works in it", () => {
    const nobody = { ...SESSION, agentHost: undefined, state: undefined };
    expect([isOfAgent(known()), isOfAgent({ session: nobody, snapshots: [] })]).toEqual([true, false]);
    for (const said of [{ agentHost: "claude-code" }, { state: "idle" }, { endedAt: NOW }])
      expect(isOfAgent({ session: { ...nobody, ...said }, snapshots: [] })).toBe(true);
  });

  test("has a lock only if its machine has sealed something of it", () => {
    expect(askerOfSession(known(snapshot("summary", { summary: "x" }))).isUnproven).toBe(false);
    expect(askerOfSession(known({ type: "summary", problem: "it does not open" })).isUnproven).toBe(true);
  });

  test("has the steps of a plan, as far as they are known", () => {
    const steps = ["one", { content: "two", status: "completed" }, { text: "three", status: "in_progress" }, 4, {}];
    expect(toldBy(known(snapshot("plan", { steps }))).plan).toEqual([
      { text: "one", state: "todo" },
      { text: "two", state: "done" },
      { text: "three", state: "now" },
    ]);
    const text = toldBy(known(snapshot("plan", { text: "# Plan\n1. one" })));
    expect([text.plan, text.others]).toEqual([[], [{ kind: "plan", lines: ["# Plan", "1. one"] }]]);
  });

  test("shows what it can't read as it is, and says what could not be checked", () => {
    const told = toldBy(known(snapshot("diff_summary", { more: 1 }), { type: "summary", problem: "it does not open" }));
    expect(told.others).toEqual([{ kind: "diff_summary", lines: ['{"more":1}'] }]);
    expect(told.problems).toEqual(["it does not open"]);
  });

  test.each<[Partial<Session>, string]>([
    [{ state: "planning" }, "working"],
    [{ state: undefined }, "working"],
    [{ state: "idle" }, "idle"],
    [{ state: "ended" }, "finished"],
    [{ state: "planning", endedAt: NOW }, "finished"],
  ])("%s is %s", (more, state) => {
    expect(stateOf({ ...SESSION, ...more })).toBe(state);
  });
});
