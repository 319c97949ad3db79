// What a person sees of a call, and what is needed before it can be approved.

import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { beforeAll, describe, expect, test } from "vitest";

import { App } from "../src/page/app.ts";
import type { Card } from "../src/page/inbox.ts";
import { AppContext } from "../src/page/parts.tsx";
import { AnswerBar, blockedBy } from "../src/page/review/answer.tsx";
import { chips, isGrave, type ReviewDocument, reviewDocument } from "../src/page/review/document.ts";
import { hourOffer, ONCE, sessionOffer } from "../src/page/review/offer.ts";
import { Reading } from "../src/page/review/reading.ts";
import { ScopeSheet } from "../src/page/review/sheets.tsx";
import { sign } from "../src/page/review/sign.ts";
import type { Action, ArtifactType } from "../src/protocol/artifact.ts";
import { utf8 } from "../src/protocol/bytes.ts";
import { sha256Hex } from "../src/protocol/hash.ts";
import { parseObject } from "../src/protocol/json.ts";
import { headline, type Payload, readPayload } from "../src/protocol/payload/index.ts";
import type { OpenedRequest } from "../src/protocol/request.ts";
import { texts } from "../src/texts.ts";
import { Desk } from "./desk.ts";

const DIGEST = "0".repeat(64);
let app: App;
let request: OpenedRequest;
beforeAll(async () => {
  const desk = await Desk.open();
  app = await desk.tab(new App(), {});
  app.set({ isOnline: true });
  const card = await desk.card(app);
  if (card.request === undefined) throw new Error("there is no request");
  request = { ...card.request, session: "s1" };
});

const read = (type: ArtifactType, payload: object): Payload =>
  readPayload(type, parseObject(JSON.stringify({ schema: "org.proto.payload", version: 2, ...payload })));
const COMMAND = { argv: ["make", "all"], cwd: "/w", state: "opaque", effects: [] };
const CALL = { kind: "exec", moment: "run", tool: "make", folder: "/w", message: {} };
const command = (more: object = {}): Payload => read("command.review", { ...COMMAND, ...more });
const shown = (payload: Payload): ReviewDocument => reviewDocument(request, payload);
const lines = (payload: Payload): string[] =>
  shown(payload).sections.flatMap((section) => section.lines.map(({ text }) => text));
const section = (payload: Payload, title: string) => shown(payload).sections.find((one) => one.title === title);

const STATES: readonly [string, () => Payload][] = [
  ["examined", () => command({ state: "examined" })],
  ["opaque", () => command()],
  ["opaque and dangerous", () => command({ effects: [{ effect: "loadsCode", detail: "LD_PRELOAD=./lib.so" }] })],
  ["not examined", () => command({ state: "notExamined", effects: undefined })],
  ["shown as JSON", () => command({ more: 1 })],
  ["of version 1 without effects", () => read("command.review", { version: 1, argv: ["make"], cwd: "/w" })],
  ["of version 1", () => read("command.review", { version: 1, argv: ["make"], cwd: "/w", effects: [] })],
  ["a plan without effects", () => read("plan.review", { text: "x" })],
];

/** The answer bar of a request, perhaps with buttons that the machine asks for. */
function bar(payload: Payload, actions: readonly Action[] = []): string {
  const card: Card = {
    requestId: request.requestId,
    msgId: undefined,
    request: { ...request, actions },
    payload,
    error: undefined,
    headline: headline(payload),
    end: undefined,
    endedAt: 0,
  };
  const content = shown(payload);
  const props = { card, content, shown: new Reading(content).shown, openNext: () => undefined };
  return renderToString(h(AppContext.Provider, { value: app, children: h(AnswerBar, props) }));
}

describe("the buttons of a machine", () => {
  /** Every button of the bar, with its classes. */
  const buttons = (payload: Payload, ...actions: readonly Action[]): string[][] =>
    [...bar(payload, actions).matchAll(/class="button ([^"]*)"[^>]*><span>([^<]*)/g)].map(([, classes, label]) => [
      label ?? "",
      classes ?? "",
    ]);
  const action = (style: Action["style"], decision: Action["decision"]): Action => ({
    id: `${style} ${decision}`,
    caption: `${style} ${decision}`,
    style,
    decision,
  });

  test("look as it wants them to, and Reject is always there", () => {
    const examined = command({ state: "examined" });
    expect(buttons(examined, action("primary", "approve"), action("secondary", "approve"))).toEqual([
      ["primary approve", "approve primary"],
      ["secondary approve", "approve secondary"],
      [texts.reject, "reject"],
    ]);
    const rejects = (["primary", "secondary", "danger"] as const).map((style) => action(style, "reject"));
    expect(buttons(examined, ...rejects)).toEqual([
      ["primary reject", "reject primary"],
      ["secondary reject", "reject secondary"],
      ["danger reject", "reject danger"],
    ]);
    // Without buttons of a machine nothing has a style.
    expect(buttons(examined)).toEqual([
      [texts.reject, "reject"],
      [texts.approve, "approve"],
    ]);
  });

  test("that approve something dangerous are held, also where the request is harmless", () => {
    const examined = command({ state: "examined" });
    expect(buttons(examined, action("danger", "approve"))).toEqual([
      [`${texts.hold}: danger approve`, "approve hold danger idle"],
      [texts.reject, "reject"],
    ]);
    const dangerous = command({ effects: [{ effect: "deletes" }] });
    expect(buttons(dangerous, action("primary", "approve"), action("danger", "approve"))).toEqual([
      [`${texts.hold}: primary approve`, "approve hold primary idle"],
      [`${texts.hold}: danger approve`, "approve hold danger idle"],
      [texts.reject, "reject"],
    ]);
  });
});

describe("the states of a request", () => {
  test.each([
    ["examined", "none", true, true],
    ["opaque", "none", true, false],
    ["opaque and dangerous", "dangerous", false, false],
    ["not examined", "unknown", false, false],
    ["shown as JSON", "unknown", false, false],
    ["of version 1 without effects", "unknown", false, false],
    ["of version 1", "none", false, false],
    ["a plan without effects", "none", true, false],
  ])("%s: caution %s, for a session %s, by a pattern %s", (name, caution, canSession, canPattern) => {
    const payload = new Map(STATES).get(name)?.();
    if (payload === undefined) throw new Error("there is no such payload");
    expect(shown(payload).caution).toBe(caution);
    expect(sessionOffer(request, payload) !== undefined).toBe(canSession);
    expect(hourOffer(payload, new Set(), false) !== undefined).toBe(canPattern);
    expect(sessionOffer({ ...request, session: undefined }, payload)).toBeUndefined();
  });

  test("are said in words", () => {
    const opaque = command();
    expect(lines(opaque)).toContain(texts.runsProjectCodeLine);
    expect(chips(opaque)).toEqual([{ text: "runs project code", isDangerous: false }]);
    const tool = { ...opaque, kind: "task", text: "Use the tool", steps: [] } as unknown as Payload;
    expect(lines(tool)).toContain(texts.knownToolLine);
    expect(chips(tool)).toEqual([{ text: "known tool", isDangerous: false }]);
    const unknown = command({ state: "notExamined", effects: undefined });
    expect(lines(unknown)).toContain(texts.runsUnknownLine);
    expect(chips(unknown)).toEqual([{ text: "not examined", isDangerous: true }]);
    const examined = command({ state: "examined" });
    expect(chips(examined)).toEqual([]);
    for (const line of [texts.runsProjectCodeLine, texts.runsUnknownLine]) expect(lines(examined)).not.toContain(line);
    const loads = command({ effects: [{ effect: "loadsCode", detail: "LD_PRELOAD=./lib.so" }] });
    expect(chips(loads).map(({ text }) => text)).toEqual(["runs project code", "loads other code LD_PRELOAD=./lib.so"]);
    expect(lines(loads)).toContain("effect: loads other code LD_PRELOAD=./lib.so, which is dangerous");
    const broken = command({ call: { ...CALL, shown: ["/x"] } });
    expect(lines(broken)[0]).toContain("it breaks the rules of its format: call.shown[0] is not in the message");
  });

  test("decide which button there is", () => {
    for (const [name, payload] of STATES) {
      const [drawn, isSerious] = [bar(payload()), isGrave(shown(payload()).caution)];
      // What nobody could examine has no button before all of it was read.
      expect(drawn.includes(texts.hold), name).toBe(shown(payload()).caution === "dangerous");
      expect(drawn.includes("button blocked"), name).toBe(shown(payload()).caution === "unknown");
      expect(drawn.includes('class="button approve"'), name).toBe(!isSerious);
      expect(drawn.includes(texts.unknownHelp), name).toBe(shown(payload()).caution === "unknown");
      expect(drawn.includes(`<strong>${texts.dangerous}.`), name).toBe(shown(payload()).caution === "dangerous");
    }
    const call = { ...CALL, message: { argv: ["make", "all"], extra: "x" }, shown: ["/argv"] };
    expect(bar(command({ call }))).toContain(texts.readFirst(1));
    expect(bar(command({ call }))).not.toContain(texts.approve);
  });

  test("say why there is no more to choose from", () => {
    const sheet = (payload: Payload): string => {
      const [choose, close] = [() => undefined, () => undefined];
      return renderToString(h(ScopeSheet, { request, payload, chosen: ONCE, choose, close }));
    };
    const unknown = sheet(command({ state: "notExamined", effects: undefined }));
    expect(unknown).toContain(texts.scopeOnlyOnceUnknown);
    expect(unknown).not.toContain(texts.scopeSession);
    expect(sheet(command())).toContain(texts.scopeNoPattern);
    expect(sheet(command())).toContain(texts.scopeSession);
    expect(sheet(command({ state: "examined" }))).toContain(texts.scopeHour);
  });
});

describe("what no view shows", () => {
  const message = { argv: ["make", "all"], run_in_background: true, note: "a\n\u202eb\n/x = 1", "odd\u200b": {} };
  const payload = (): Payload => command({ call: { ...CALL, message, shown: ["/argv"] } });

  test("has its pointer and its value, made visible, and is never folded", () => {
    const rest = section(payload(), texts.restTitle);
    expect(rest).toMatchObject({ isFolded: false, need: "always" });
    expect(rest?.lines.map(({ text }) => text)).toEqual([
      "/run_in_background = true",
      "/note =",
      "│ a",
      "│ ⟨U+202E⟩b",
      "│ /x = 1",
      "/odd⟨U+200B⟩ = {}",
    ]);
    const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`m${at}`, at]));
    const long = section(command({ call: { ...CALL, message: many } }), texts.restTitle);
    expect([long?.isFolded, long?.lines.length]).toEqual([false, 2_000]);
    expect(
      section(command({ call: { ...CALL, message: { argv: ["make", "all"] }, shown: ["/argv"] } }), texts.restTitle),
    ).toBeUndefined();
  });

  test("must all have been on the screen, whatever the state", () => {
    for (const state of [{ state: "examined" }, { state: "opaque" }, { effects: [{ effect: "deletes" }] }]) {
      const content = shown(command({ ...state, call: { ...CALL, message, shown: ["/argv"] } }));
      const reading = new Reading(content);
      const at = content.sections.findIndex(({ title }) => title === texts.restTitle);
      const count = content.sections[at]?.lines.length ?? 0;
      expect(blockedBy(content.caution, reading.shown)).toBe(texts.readFirst(count));
      for (let line = 0; line < count - 1; line += 1) reading.see(at, line);
      expect(blockedBy(content.caution, reading.shown)).toBe(texts.readFirst(1));
      expect(reading.next).toEqual({ section: at, line: count - 1 });
      reading.see(at, count - 1);
      expect(blockedBy(content.caution, reading.shown)).toBeUndefined();
    }
  });

  test("of what nobody could examine, every line must have been there", () => {
    const content = "a\nb\n";
    const file = { path: "x.sh", role: "script", digest: sha256Hex(utf8(content)), size: 4, content };
    const grave = shown(command({ state: "notExamined", effects: undefined, files: [file] }));
    const reading = new Reading(grave);
    expect(blockedBy(grave.caution, reading.shown)).toBe(texts.openFirst(1));
    for (let left = grave.lines; left > 0; left -= 1) {
      expect(reading.shown.unread).toBe(left);
      expect(blockedBy(grave.caution, reading.shown)).toBeDefined();
      const { next } = reading;
      if (next !== undefined) reading.see(next.section, next.line);
    }
    expect([blockedBy(grave.caution, reading.shown), reading.next]).toEqual([undefined, undefined]);
  });

  test("is not signed before", async () => {
    const card = { requestId: request.requestId, request, headline: "make" } as Card;
    const missing = { files: 0, ofFiles: 0, lines: 1, ofLines: 2, unread: 1 };
    const answer = {
      outcome: "approve",
      offer: ONCE,
      reason: "",
      action: undefined,
      shown: missing,
      isSerious: false,
    } as const;
    await expect(sign(app, card, answer)).rejects.toThrow(texts.notReadNow);
  });

  test("the parts of exec that the view claims are shown as they are", () => {
    const own = { argv: ["make", "all"], stdin: "terminal", user: { uid: 0, groups: [1, 2], umask: 18 } };
    const all = lines(command({ call: { ...CALL, message: own, shown: ["/argv", "/stdin", "/user"] } }));
    expect(all).toContain('reads input "terminal"');
    expect(all).toContain("as user uid=0, groups/0=1, groups/1=2, umask=18");
    const digest = { argv: ["make", "all"], stdin: { digest: DIGEST, size: 5 } };
    const claimed = lines(command({ call: { ...CALL, message: digest, shown: ["/argv", "/stdin"] } }));
    expect(claimed).toContain(`reads input digest="${DIGEST}", size=5`);
  });
});

describe("around it", () => {
  test("variables are shown first", () => {
    const environment = [
      { name: "LD_PRELOAD", value: "./lib\u202e.so" },
      { name: "TOKEN", mac: DIGEST },
    ];
    const env = [{ name: "LD_PRELOAD", value: "./lib\u202e.so" }, { name: "TOKEN" }];
    const all = lines(command({ env, call: { ...CALL, environment } }));
    expect(all.slice(0, 5)).toEqual([
      "with LD_PRELOAD=./lib⟨U+202E⟩.so",
      "with TOKEN=(a secret that is not shown)",
      "runs make",
      "      all",
      "in /w",
    ]);
  });

  test("who asks is shown, and what the agent says is marked as its words", () => {
    const asking = {
      agent: "Claude\u202e",
      project: "widgets",
      branch: "main",
      task: "Fix\nit",
      words: "Safe.\nrequest x",
    };
    const all = lines(command(asking));
    const at = all.indexOf("asked by Claude⟨U+202E⟩");
    expect(all.slice(at, at + 9)).toEqual([
      "asked by Claude⟨U+202E⟩",
      "project widgets",
      "branch main",
      "task:",
      "│ Fix",
      "│ it",
      "in the agent's own words:",
      "│ Safe.",
      "│ request x",
    ]);
  });

  test("the proof has everything that is bound, and neither counts nor holds up an approval", () => {
    const call = {
      ...CALL,
      repository: "/w",
      digest: "1".repeat(64),
      message: { argv: ["make", "all"] },
      shown: ["/argv"],
      aside: { "/id\u202e": { a: [1, "x"] }, "/time": 5 },
      environment: [
        { name: "HOME", value: "/h\u200b" },
        { name: "TOKEN", mac: DIGEST },
      ],
      files: [
        { path: "/usr/bin/make", role: "executable", digest: DIGEST },
        { path: "/h/.bashrc", role: "startup" },
      ],
    };
    const content = shown(command({ call }));
    const proof = content.sections.at(-1);
    expect(proof).toMatchObject({ title: "Proof", isFolded: true, need: "never" });
    expect(proof?.lines.map(({ text }) => text)).toEqual([
      "kind exec",
      "moment run",
      "tool make",
      "folder /w",
      "repository /w",
      `SHA-256 of the host's message ${"1".repeat(64)}`,
      'aside /id⟨U+202E⟩ = a/0=1, a/1="x"',
      "aside /time = 5",
      "variable HOME=/h⟨U+200B⟩",
      "variable TOKEN=(set, not shown)",
      `file /usr/bin/make, executable: SHA-256 ${DIGEST}`,
      "file /h/.bashrc, read by the shell at its start: there is no file",
    ]);
    const counted = content.sections.slice(0, -1).reduce((sum, part) => sum + part.lines.length, 0);
    expect([content.lines, content.files]).toEqual([counted, 0]);
    expect(blockedBy("dangerous", new Reading(content).shown)).toBeUndefined();
  });
});
