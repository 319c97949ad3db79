// The three states of a call, and which of them alarm people.

import { describe, expect, test } from "vitest";

import type { ArtifactType } from "../src/protocol/artifact.ts";
import { parseObject } from "../src/protocol/json.ts";
import { type Alarm, alarmOf } from "../src/protocol/payload/alarm.ts";
import { readPayload } from "../src/protocol/payload/index.ts";

const HASH = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const call = { kind: "hook.claude", moment: "PreToolUse", tool: "t", folder: "/w", message: {} };
const deletes = { effect: "deletes", detail: "a" };
const command = { shell: "x", cwd: "/w" };
const patch = {
  diff: "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n",
  files: [{ path: "a", status: "modified", added: 1, removed: 1, baseDigest: HASH, resultDigest: HASH }],
};

const CASES: [string, ArtifactType, object, Alarm][] = [
  ["examined", "command.review", { ...command, state: "examined", effects: [{ effect: "network" }] }, "neutral"],
  ["opaque", "command.review", { ...command, state: "opaque", effects: [{ effect: "runsCode" }] }, "neutral"],
  ["not examined", "command.review", { ...command, state: "notExamined" }, "unclear"],
  ["fetched", "command.review", { ...command, state: "notExamined", effects: [{ effect: "runsFetched" }] }, "unclear"],
  ["dangerous", "command.review", { ...command, state: "examined", effects: [deletes] }, "danger"],
  ["opaque and dangerous", "command.review", { ...command, state: "opaque", effects: [deletes] }, "danger"],
  ["dangerous in part", "command.review", { ...command, state: "notExamined", effects: [deletes] }, "danger"],
  ["a tool that no rule names", "task.review", { text: "x", state: "notExamined", call }, "unclear"],
  ["a task", "task.review", { text: "x" }, "neutral"],
  ["a plan", "plan.review", { text: "x" }, "neutral"],
  ["a question", "checkpoint.review", { summary: "x", call }, "neutral"],
  ["a patch", "patch.review", patch, "neutral"],
  ["a patch outside", "patch.review", { ...patch, effects: [{ effect: "leavesRepository" }] }, "danger"],
  ["what nobody here can read", "plan.review", { text: "x", version: 9 }, "unclear"],
];

describe("alarm", () => {
  test.each(CASES)("%s", (_, type, members, expected) => {
    const text = JSON.stringify({ schema: "org.proto.payload", version: 2, ...members });
    expect(alarmOf(readPayload(type, parseObject(text)))).toBe(expected);
  });
});
