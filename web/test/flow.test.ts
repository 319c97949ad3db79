// The inbox by task, what comes after an answer, what a notification says, and which words of a line have changed.

import { beforeAll, describe, expect, test } from "vitest";

import { App } from "../src/page/app.ts";
import { notificationOf } from "../src/page/attention.ts";
import { groupsOf, initials } from "../src/page/group.ts";
import { type Card, Inbox } from "../src/page/inbox.ts";
import { following, waitsToBeOpened } from "../src/page/next.ts";
import { diffFiles } from "../src/page/review/diff.ts";
import { changedPieces } from "../src/page/review/words.ts";
import { canBeTogether, combinedSentence, leftOut } from "../src/page/together.ts";
import { parseObject } from "../src/protocol/json.ts";
import { readPayload } from "../src/protocol/payload/index.ts";
import { texts } from "../src/texts.ts";
import { Desk } from "./desk.ts";

let base: Card;
beforeAll(async () => {
  const desk = await Desk.open();
  base = await desk.card(await desk.tab(new App(), {}));
});

interface About {
  readonly session?: string;
  readonly payload?: object;
  readonly kind?: "command.review" | "checkpoint.review";
}

function card(requestId: string, { session, payload = {}, kind = "command.review" }: About = {}): Card {
  const whole =
    kind === "command.review"
      ? { argv: ["make"], cwd: "/w", state: "examined", effects: [], ...payload }
      : { summary: "Which?", ...payload };
  const text = JSON.stringify({ schema: "org.proto.payload", version: 2, ...whole });
  if (base.request === undefined) throw new Error("there is no request");
  const request = { ...base.request, requestId, session };
  return { ...base, requestId, request, payload: readPayload(kind, parseObject(text)) };
}

const DELETES = { effects: [{ effect: "deletes", detail: "/srv" }] };

describe("groups", () => {
  test("are by session, else by task, in the order of their first request", () => {
    const task = (text: string) => ({ payload: { task: text, agent: "Claude Code", project: "shop" } });
    const groups = groupsOf([
      card("a", { session: "s1", ...task("One\nmore") }),
      card("b", task("Two")),
      card("c", { session: "s1" }),
      card("d", task("Two")),
    ]);
    expect(groups.map(({ cards }) => cards.map(({ requestId }) => requestId))).toEqual([
      ["a", "c"],
      ["b", "d"],
    ]);
    expect(groups[0]?.asker).toMatchObject({ task: "One more", agent: "Claude Code", project: "shop" });
  });

  test("never have a bare id for a name, and nothing invisible", () => {
    const [untitled, evil] = [
      card("a", { session: "9f3c2d1e-1111" }),
      card("b", { payload: { task: "a\u202eb", agent: "\u200bx" } }),
    ];
    const [one, other] = groupsOf([untitled, evil]).map(({ asker }) => asker);
    expect(one?.task).toMatch(/^Untitled task · began \d\d:\d\d$/);
    expect([other?.task, other?.agent]).toEqual(["a⟨U+202E⟩b", "⟨U+200B⟩x"]);
    expect(groupsOf([{ ...base, request: undefined, payload: undefined }])).toEqual([]);
  });

  test("an agent has two letters", () => {
    expect(["Claude Code", "Codex", undefined, "\u202e"].map(initials)).toEqual(["CC", "Co", "", ""]);
  });

  test("the number is of what can be answered here", () => {
    const broken = { ...card("b"), request: undefined, payload: undefined };
    const inbox = new Inbox([card("a"), broken, { ...card("c"), end: "expired" }]);
    expect([inbox.answerable, inbox.open.map(({ requestId }) => requestId)]).toEqual([1, ["a"]]);
  });
});

describe("after an answer", () => {
  test("what follows comes first, and what needs care waits to be opened", () => {
    const cards = ["a", "b", "c"].map((id) => card(id));
    expect(following(cards, "b").map(({ requestId }) => requestId)).toEqual(["c", "a"]);
    expect(following(cards, "gone")).toBe(cards);
    expect(waitsToBeOpened(card("a"))).toBe(false);
    expect(waitsToBeOpened(card("a", { payload: DELETES }))).toBe(true);
    expect(waitsToBeOpened(card("a", { payload: { state: "notExamined", effects: undefined } }))).toBe(true);
    expect(waitsToBeOpened({ ...base, payload: undefined })).toBe(true);
  });

  test("together is only what needs no more care, and no question", () => {
    expect(canBeTogether(card("a"))).toBe(true);
    expect(canBeTogether(card("a", { payload: { state: "opaque" } }))).toBe(true);
    const others = [
      card("a", { payload: DELETES }),
      card("a", { payload: { state: "notExamined", effects: undefined } }),
      card("a", { kind: "checkpoint.review" }),
      { ...card("a"), end: "withdrawn" } as const,
      { ...base, request: undefined, payload: undefined },
    ];
    for (const other of others) expect(canBeTogether(other)).toBe(false);
  });

  test("what is left out is counted by kind", () => {
    const button = { id: "a", caption: "A", style: "primary", decision: "approve" } as const;
    const plain = card("a");
    if (plain.request === undefined) throw new Error("there is no request");
    const others = [
      card("a", { payload: DELETES }),
      card("b", { payload: { state: "notExamined", effects: undefined } }),
      card("c", { kind: "checkpoint.review" }),
      card("d", { kind: "checkpoint.review" }),
      { ...plain, request: { ...plain.request, actions: [button] } },
      { ...card("e", { payload: DELETES }), end: "withdrawn" } as const,
    ];
    expect(leftOut([plain])).toBe("");
    expect(leftOut([plain, ...others])).toBe(
      "Left out: 1 dangerous, 1 unclear, 2 questions, 1 with buttons of its own. Each needs its own answer.",
    );
    expect(leftOut(others.slice(0, 1))).toBe("Left out: 1 dangerous. Each needs its own answer.");
  });

  test("what several do is one sentence, from what was found", () => {
    const command = (...effects: object[]) => card("a", { payload: { effects } }).payload;
    const network = { effect: "network", detail: "packages.example.org" };
    const file = (path: string) => ({ path, status: "added", added: 1, removed: 0, resultDigest: "0".repeat(64) });
    const diff = (path: string): string => `--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+x\n`;
    const patch = (...paths: string[]) => {
      const members = { diff: paths.map(diff).join(""), files: paths.map(file), effects: [] };
      const text = JSON.stringify({ schema: "org.proto.payload", version: 2, ...members, words: "all checked" });
      return readPayload("patch.review", parseObject(text));
    };
    const said = (...payloads: (ReturnType<typeof patch> | undefined)[]): string =>
      combinedSentence(payloads.filter((payload) => payload !== undefined));
    expect(said(command(network), command({ effect: "tests" }), patch("a", "b"))).toBe(
      "Runs this project's tests and connects to packages.example.org, and changes 2 files, +2 −0",
    );
    expect(said(command(), command(), patch("a"), patch("a"))).toBe("Runs 2 commands, and changes 1 file, +2 −0");
    expect(said(command(network), command(network))).toBe("Connects to packages.example.org");
    const plan = readPayload("plan.review", parseObject('{"schema":"org.proto.payload","version":2,"text":"x"}'));
    expect(said(command(), plan)).toBe("Runs 1 command, and proposes 1 plan");
    expect(said(patch("a"))).toBe("Adds a, +1 −0");
  });
});

test("a notification says that something waits; if wanted, who asks and what happens; what is dangerous says so", () => {
  const who = { agent: "Claude Code", project: "shop" };
  const said = (of: Card, showsRequests: boolean) => notificationOf(of, showsRequests)?.title;
  expect(notificationOf(card("a", { payload: who }), false)).toEqual({ title: texts.name, body: texts.waitingNotice });
  expect(said(card("a", { payload: who }), true)).toBe("Claude Code · shop");
  expect(said(card("a", { payload: { ...who, ...DELETES } }), true)).toBe(`${texts.dangerous} · shop`);
  expect(said({ ...base, request: undefined, payload: undefined }, true)).toBeUndefined();
});

describe("a change", () => {
  const DIFF = `--- a/x.py
+++ b/x.py
@@ -8,3 +9,4 @@ def total(items)
 def total(items):
-    result = 0
+    result = Decimal(0)
+    more()
     return
`;
  test("has the numbers of its lines on both sides", () => {
    const lines = diffFiles(DIFF)[0]?.lines ?? [];
    expect(lines.map(({ kind, numbers }) => [kind, ...(numbers ?? [])])).toEqual([
      ["known"],
      ["known"],
      ["hunk"],
      ["text", 8, 9],
      ["removed", 9, undefined],
      ["added", undefined, 10],
      ["added", undefined, 11],
      ["text", 10, 12],
    ]);
  });

  test("hides no line that its heading does not say", () => {
    const kinds = (diff: string) => diffFiles(diff)[0]?.lines.map(({ kind }) => kind);
    const hunk = "@@ -1 +1 @@\n-a\n+b\n";
    expect(kinds(`--- a/old.py\n+++ b/x.py\n${hunk}`)).toEqual(["note", "known", "hunk", "removed", "added"]);
    const mode = `diff --git a/x.sh b/x.sh\nold mode 100644\nnew mode 100755\n--- a/x.sh\n+++ b/x.sh\n${hunk}`;
    expect(kinds(mode)?.slice(0, 5)).toEqual(["known", "note", "note", "known", "known"]);
  });

  test("marks the words that differ, and nothing where the whole line is another one", () => {
    const changed = (text: string, other: string) =>
      changedPieces(text, other).flatMap((piece) => (piece.isChanged ? [piece.text] : []));
    expect(changed("    result = Decimal(0)", "    result = 0")).toEqual(["Decimal(", ")"]);
    expect(changed("    result = 0", "    result = Decimal(0)")).toEqual([]);
    expect(changed("import os", "x = 1")).toEqual([]);
    expect(changed(`${"word ".repeat(90)}new`, `${"word ".repeat(90)}old`)).toEqual(["new"]);
    for (const text of ["a⟨U+202E⟩b = 1", "", "   "]) {
      const pieces = changedPieces(text, "a = 2");
      expect(pieces.map((piece) => piece.text).join("")).toBe(text);
    }
  });
});
