// The page without a browser: what is shown, counted and offered.

import { describe, expect, test } from "vitest";

import { type Card, FADE_MILLIS, Inbox } from "../src/page/inbox.ts";
import { isStopping, statusOf, stopStatus } from "../src/page/prompts.ts";
import { diffFiles } from "../src/page/review/diff.ts";
import { markdownLines } from "../src/page/review/document.ts";
import { shownCode } from "../src/page/review/line.ts";
import { hourOffer, patternArguments } from "../src/page/review/offer.ts";
import { Reading } from "../src/page/review/reading.ts";
import { linkOf, readRoute, writeRoute } from "../src/page/route.ts";
import type { SentRecord } from "../src/page/sent.ts";
import { changedAreas, INITIAL, type PromptRecord, type State } from "../src/page/state.ts";
import { parseObject } from "../src/protocol/json.ts";
import { type Payload, readPayload } from "../src/protocol/payload/index.ts";

const TWO =
  "diff --git a/one.rs b/one.rs\nindex 1..2 100644\n--- a/one.rs\n+++ b/one.rs\n@@ -1,2 +1,2 @@\n a\n--- x\n+++ y\n--- a/two.rs\n+++ b/two.rs\n@@ -1 +1,2 @@\n-b\n+c\n+d\n";

describe("a diff", () => {
  test("has every line in one file; a removed line that looks like a header is none", () => {
    const files = diffFiles(TWO);
    expect(files.map(({ name, added, removed }) => [name, added, removed])).toEqual([
      ["one.rs", 1, 1],
      ["two.rs", 2, 1],
    ]);
    expect(files[0]?.lines[6]).toMatchObject({ kind: "removed", text: "--- x" });
    const odd = ["x", "\n\n", "@@ -1,9 +1,9 @@\n+only", "Binary files a and b differ\n", "--- a\n", TWO];
    for (const diff of odd) {
      const lines = diffFiles(diff).flatMap((file) => file.lines.map(({ text }) => text));
      expect(lines.join("\n")).toBe(diff.replace(/\n$/, ""));
    }
    expect(diffFiles("Binary files a and b differ\n")[0]?.isBinary).toBe(true);
  });
});

describe("what is shown", () => {
  test("Markdown keeps every character", () => {
    const text = "# One\n<!-- hidden -->\n```\n# code\n```\n[a](b)\n    x";
    const lines = markdownLines(text);
    expect(lines.map((line) => line.text).join("\n")).toBe(text);
    expect(lines.map((line) => line.kind)).toEqual(["heading", "prose", "code", "code", "code", "prose", "code"]);
  });

  test("a tab and what hides are written out", () => {
    expect(shownCode("a\tb\u202e")).toBe("a⟨⇥⟩b⟨U+202E⟩");
  });

  test("a line counts once, and opens its file", () => {
    const lines = [
      { kind: "text", text: "a" },
      { kind: "text", text: "b" },
    ] as const;
    const sections = [
      { title: undefined, note: "", lines, isFolded: false, need: "caution" },
      { title: "x", note: "", lines, isFolded: true, need: "caution" },
      { title: "rest", note: "", lines, isFolded: false, need: "always" },
      { title: "proof", note: "", lines, isFolded: true, need: "never" },
    ] as const;
    const reading = new Reading({ sections, caution: "none", files: 1, lines: 6 });
    expect([reading.see(0, 0), reading.see(0, 0), reading.see(0, 9)]).toEqual([true, false, false]);
    const nothing = { files: 0, ofFiles: 1, lines: 1, ofLines: 6, unread: 2 };
    expect([reading.shown, reading.next]).toEqual([nothing, { section: 1, line: 0 }]);
    reading.see(1, 1);
    expect([reading.shown, reading.next]).toEqual([
      { ...nothing, files: 1, lines: 2 },
      { section: 2, line: 0 },
    ]);
    reading.see(2, 0);
    expect([reading.shown.unread, reading.next]).toEqual([1, { section: 2, line: 1 }]);
    reading.see(2, 1);
    expect([reading.see(3, 0), reading.next]).toEqual([false, undefined]);
    expect(reading.shown).toEqual({ files: 1, ofFiles: 1, lines: 4, ofLines: 6, unread: 0 });
  });
});

function command(argv: readonly string[], effects: unknown, more: object = {}): Payload {
  const state = effects === undefined ? "notExamined" : "examined";
  const payload = JSON.stringify({ schema: "org.proto.payload", version: 2, argv, cwd: "/w", effects, state, ...more });
  return readPayload("command.review", parseObject(payload));
}

describe("an offer for an hour", () => {
  test("covers what is shown, never an option, and nothing dangerous", () => {
    const test = command(["cargo", "test", "-q", "login"], []);
    expect(hourOffer(test, new Set([3]), true)).toMatchObject({
      scope: "timebox",
      pattern: { argv: ["cargo", "test", "-q", "*", "**"] },
      sentence: expect.stringContaining("every cargo test -q * ** in /w") as unknown,
    });
    // Neither the program nor an option becomes a star.
    expect(hourOffer(test, new Set([0, 2]), false)?.pattern).toEqual({ argv: ["cargo", "test", "-q", "login"] });
    expect(hourOffer(command(["ls", "a*"], []), new Set(), false)).toBeUndefined();
    expect(patternArguments(command(["rm"], [{ effect: "deletes" }]))).toBeUndefined();
    expect(patternArguments(command(["rm"], undefined))).toBeUndefined();
    expect(patternArguments(command(["make"], [], { state: "opaque" }))).toBeUndefined();
    expect(patternArguments(command(["ls"], [], { version: 1, state: undefined }))).toBeUndefined();
  });
});

const card = (requestId: string): Card => ({
  requestId,
  msgId: undefined,
  request: undefined,
  payload: undefined,
  error: undefined,
  headline: requestId,
  end: undefined,
  endedAt: 0,
});

describe("the inbox", () => {
  const ids = ({ shown, waiting }: Inbox): string[][] =>
    [shown, waiting].map((cards) => cards.map((one) => one.requestId));

  test("does not move what is on the screen, and loses nothing", () => {
    const inbox = new Inbox().add(card("a"), true).add(card("b"), true).add(card("b"), true).add(card("c"), false);
    expect(ids(inbox)).toEqual([["a", "c"], ["b"]]);
    expect(ids(inbox.merge())).toEqual([["a", "c", "b"], []]);
    expect(inbox.pending).toBe(3);
  });

  test("an ended card stays for a while, and as long as it is open", () => {
    const inbox = new Inbox([card("a"), card("b")]).end("a", "withdrawn", 1_000).end("a", "expired", 2_000);
    expect(inbox.get("a")?.end).toBe("withdrawn");
    expect(ids(inbox.tick(1_000 + FADE_MILLIS - 1, undefined))).toEqual([["a", "b"], []]);
    expect(ids(inbox.tick(1_000 + FADE_MILLIS, "a"))).toEqual([["a", "b"], []]);
    expect(ids(inbox.tick(1_000 + FADE_MILLIS, undefined))).toEqual([["b"], []]);
  });
});

test("a route is read as it was written", () => {
  for (const route of [{ name: "inbox" }, { name: "devices" }, { name: "request", id: "a/b#%c" }] as const) {
    expect(readRoute(writeRoute(route))).toEqual(route);
  }
  expect([readRoute("#/nothing"), readRoute("#/request/%")]).toEqual([{ name: "inbox" }, { name: "inbox" }]);
});

describe("what a change of the state moves on the screen", () => {
  const shown = (requestId: string, end?: Card["end"]): Card => ({ ...card(requestId), end });
  const open: State = {
    ...INITIAL,
    phase: "ready",
    isOnline: true,
    route: { name: "request", id: "open" },
    inbox: new Inbox([shown("open"), shown("other")]),
  };
  const record = { requestId: "open", signedAt: "", acceptedAt: "now" } as SentRecord;
  const { acceptedAt: _, ...sending } = record;

  test.each<[string, Partial<State>, readonly string[]]>([
    ["another card ends", { inbox: new Inbox([shown("open"), shown("other", "withdrawn")]) }, ["list"]],
    ["another card leaves", { inbox: new Inbox([shown("open")]) }, ["list"]],
    [
      "the first arrival gets a button above the list",
      { inbox: new Inbox(open.inbox.shown, [shown("new")]) },
      ["list"],
    ],
    ["the open request ends", { inbox: new Inbox([shown("open", "expired"), shown("other")]) }, ["list", "pane"]],
    ["the open request is answered", { sent: new Map([["open", record]]) }, ["pane"]],
    ["the open request is being answered", { sent: new Map([["open", sending]]) }, ["pane"]],
    ["another request is answered", { sent: new Map([["other", { ...record, requestId: "other" }]]) }, []],
    [
      "the open request was asked for again",
      { again: [{ requestId: "open", enforcerId: "m", askedAt: "" }] },
      ["pane"],
    ],
    ["another request was asked for again", { again: [{ requestId: "x", enforcerId: "m", askedAt: "" }] }, []],
    ["the connection goes", { isOnline: false }, ["list", "pane"]],
    ["another screen", { route: { name: "inbox" } }, ["list", "pane"]],
    [
      "a stop",
      { stops: [{ id: "s", machine: "m", changes: [], claimed: [], kind: "other", text: "", next: "" }] },
      ["list", "pane"],
    ],
    ["news of a session", { sessionNews: 7 }, []],
    ["news of answers on other devices", { historyNews: 7 }, []],
  ])("%s", (_, change, areas) => {
    expect(changedAreas(open, { ...open, ...change })).toEqual(areas);
  });

  test("without the frame of the screens, the connection moves nothing", () => {
    const alone: State = { ...open, link: "https://gateway.example/pair#x" };
    expect(changedAreas(alone, { ...alone, isOnline: false })).toEqual([]);
  });
});

describe("links and prompts", () => {
  test("a page elsewhere is opened with the whole link in its fragment", () => {
    const link = "https://gateway.example/join#secret";
    expect(linkOf(`https://review.example/join#${link}`, `#${link}`)).toBe(link);
    expect(linkOf("https://review.example/join#x", `#${link.replace("#", "%23")}`)).toBe(link);
    expect(linkOf(link, "#secret")).toBe(link);
  });

  test("a prompt waits until its time is over", () => {
    const prompt: PromptRecord = {
      requestId: "p",
      enforcerId: "m",
      text: "go on",
      sentAt: "2026-11-16T10:00:00Z",
      expiresAt: "2026-11-16T11:00:00Z",
      status: "queued",
    };
    const [before, after] = [Date.parse("2026-11-16T10:30:00Z"), Date.parse("2026-11-16T11:00:00Z")];
    expect([statusOf(prompt, before), statusOf(prompt, after)]).toEqual(["queued", "unheard"]);
    expect(statusOf({ ...prompt, status: "delivered" }, after)).toBe("delivered");
  });

  test("an agent is stopped by an order to its own machine that is on its way or was taken", () => {
    const now = Date.parse("2026-11-16T10:30:00Z");
    const of = { sessionId: "s", machine: "m" };
    const stop = (status: PromptRecord["status"], more: Partial<PromptRecord> = {}): PromptRecord => ({
      requestId: "p",
      enforcerId: "m",
      sessionId: "s",
      text: "Stop this agent",
      isStop: true,
      sentAt: "2026-11-16T10:00:00Z",
      expiresAt: "2026-11-17T10:00:00Z",
      status,
      ...more,
    });
    const { isStop: _, ...words } = stop("delivered");
    // Words, another session, and a session of another machine that has the same name.
    for (const other of [words, stop("delivered", { sessionId: "t" }), stop("delivered", { enforcerId: "n" })])
      expect(stopStatus([other], of, now)).toBeUndefined();
    const counts = (["sending", "queued", "delivered", "rejected", "expired", "error"] as const).map((status) =>
      isStopping(stopStatus([stop(status)], of, now)),
    );
    expect(counts).toEqual([true, true, true, false, false, false]);
    expect(isStopping(stopStatus([stop("queued")], of, Date.parse("2026-11-17T10:00:00Z")))).toBe(false);
    // One that failed before or after changes nothing.
    for (const all of [["rejected", "delivered"] as const, ["delivered", "rejected"] as const])
      expect(
        stopStatus(
          all.map((status) => stop(status)),
          of,
          now,
        ),
      ).toBe("delivered");
    expect(stopStatus([], of, now)).toBeUndefined();
  });
});
