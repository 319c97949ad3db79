// Who asks, and why: nothing in it can pass for what we derived, and older payloads say what they have.

import { describe, expect, test } from "vitest";

import { parseObject } from "../src/protocol/json.ts";
import { readPayload } from "../src/protocol/payload/index.ts";
import { whoAsks } from "../src/protocol/payload/who.ts";

function who(members: object): object {
  const payload = { schema: "org.proto.payload", version: 2, text: "x", ...members };
  return whoAsks(readPayload("plan.review", parseObject(JSON.stringify(payload))));
}

describe("who asks", () => {
  test("is what the payload says, and nothing else", () => {
    expect(who({ agent: "Claude Code", project: "shop", branch: "main", task: "Fix it", words: "I test" })).toEqual({
      agent: "Claude Code",
      project: "shop",
      branch: "main",
      task: "Fix it",
      words: "I test",
    });
    expect(who({ project: "shop" })).toEqual({ project: "shop" });
    expect(who({ version: 1 })).toEqual({});
  });

  test("does not grow long", () => {
    const { agent, task } = who({ agent: "x".repeat(10_000), task: "y".repeat(10_000) }) as Record<string, string>;
    expect([agent?.length, task?.length]).toEqual([81, 1001]);
  });
});
