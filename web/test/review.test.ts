// What a person sees of a call, and what is needed before it can be approved.

import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { beforeAll, describe, expect, test } from "vitest";

import { App } from "../src/page/app.ts";
import type { Card } from "../src/page/inbox.ts";
import { AppContext } from "../src/page/parts.tsx";
import { AnswerBar } from "../src/page/review/answer.tsx";
import { blockedBy } from "../src/page/review/buttons.tsx";
import { isGrave, type ReviewDocument, reviewDocument } from "../src/page/review/document.ts";
import { hourOffer, ONCE, sessionOffer } from "../src/page/review/offer.ts";
import { Reading } from "../src/page/review/reading.ts";
import { ScopeSheet } from "../src/page/review/sheets.tsx";
import { sign } from "../src/page/review/sign.ts";
import { WhoAndWhy } from "../src/page/screens/card.tsx";
import type { Action, ArtifactType } from "../src/protocol/artifact.ts";
import { utf8 } from "../src/protocol/bytes.ts";
import { sha256Hex } from "../src/protocol/hash.ts";
import { parseObject } from "../src/protocol/json.ts";
import { shortFingerprint } from "../src/protocol/keys.ts";
import { headline, type Payload, readPayload } from "../src/protocol/payload/index.ts";
import { foundIn } from "../src/protocol/payload/sentence.ts";
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
function bar(payload: Payload, actions: readonly Action[] = [], isRead = false): string {
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
  const reading = new Reading(content);
  while (isRead && reading.next !== undefined) reading.see(reading.next.section, reading.next.line);
  const props = { card, content, shown: reading.shown, openNext: () => undefined };
  return renderToString(h(AppContext.Provider, { value: app, children: h(AnswerBar, props) }));
}

describe("the buttons of a machine", () => {
  /** Every button of the bar, with its classes. */
  const buttons = (payload: Payload, ...actions: readonly Action[]): string[][] =>
    [
      ...bar(payload, actions, true).matchAll(
        /class="(?:button|rail) ([^"]*)"[^>]*>(?:<span class="thumb".*?<\/span>)?<span(?: class="label")?>([^<]*)/g,
      ),
    ].map(([, classes, label]) => [label ?? "", classes ?? ""]);
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
    const found = (payload: Payload) => foundIn(payload).map(({ weight }) => weight);
    expect(found(command())).toEqual(["plain"]);
    expect(found({ ...command(), kind: "task", text: "Use the tool", steps: [] } as unknown as Payload)).toEqual([
      "plain",
    ]);
    expect(found(command({ state: "notExamined", effects: undefined }))).toEqual(["unclear"]);
    expect(found(command({ state: "examined" }))).toEqual([]);
    const loads = command({ effects: [{ effect: "loadsCode", detail: "LD_PRELOAD=./lib.so" }] });
    expect(found(loads)).toContain("danger");
    expect(foundIn(loads).some(({ text }) => text.includes("LD_PRELOAD=./lib.so"))).toBe(true);
    const broken = command({ call: { ...CALL, shown: ["/x"] } });
    expect(lines(broken)[0]).toContain("it breaks the rules of its format: call.shown[0] is not in the message");
  });

  test("decide which button there is", () => {
    for (const [name, payload] of STATES) {
      const [drawn, isSerious] = [bar(payload()), isGrave(shown(payload()).caution)];
      // What is dangerous or nobody could examine has no button before all of it was read; it is held then.
      expect(drawn.includes(texts.hold), name).toBe(false);
      expect(bar(payload(), [], true).includes(texts.hold), name).toBe(isSerious);
      expect(drawn.includes("rail blocked"), name).toBe(isSerious);
      expect(drawn.includes('class="button approve"'), name).toBe(!isSerious);
      // Where Approve usually is stands what does no harm.
      if (isSerious) expect(drawn.lastIndexOf(texts.rejectWhy), name).toBeGreaterThan(drawn.indexOf("rail"));
    }
    const call = { ...CALL, message: { argv: ["make", "all"], extra: "x" }, shown: ["/argv"] };
    for (const part of texts.readFirst(1)) expect(bar(command({ call }))).toContain(part);
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
    for (const state of [{ state: "examined" }, { state: "opaque" }]) {
      const content = shown(command({ ...state, call: { ...CALL, message, shown: ["/argv"] } }));
      const reading = new Reading(content);
      const at = content.sections.findIndex(({ title }) => title === texts.restTitle);
      const count = content.sections[at]?.lines.length ?? 0;
      expect(blockedBy(content.caution, reading.shown)).toEqual(texts.readFirst(count));
      for (let line = 0; line < count - 1; line += 1) reading.see(at, line);
      expect(blockedBy(content.caution, reading.shown)).toEqual(texts.readFirst(1));
      expect(reading.next).toEqual({ section: at, line: count - 1 });
      reading.see(at, count - 1);
      expect(blockedBy(content.caution, reading.shown)).toBeUndefined();
    }
  });

  test.each([
    ["of what nobody could examine", { state: "notExamined", effects: undefined }],
    ["of what is dangerous", { effects: [{ effect: "deletes" }] }],
  ])("%s, every line must have been there", (_, state) => {
    const content = "a\nb\n";
    const file = { path: "x.sh", role: "script", digest: sha256Hex(utf8(content)), size: 4, content };
    const grave = shown(command({ ...state, files: [file] }));
    const reading = new Reading(grave);
    expect(blockedBy(grave.caution, reading.shown)).toEqual(texts.openFirst(1));
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
    // In the proof, where the label stands beside it.
    expect(all).toContain("uid=0, groups/0=1, groups/1=2, umask=18");
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
    expect(all.slice(0, 4)).toEqual([
      "with LD_PRELOAD=./lib⟨U+202E⟩.so",
      "with TOKEN=(secret, not shown)",
      "make all",
      `in /w, on ${request.enforcerId}`,
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
    const card = { requestId: "r", request, payload: command(asking) } as Card;
    const drawn = renderToString(h(WhoAndWhy, { card }));
    for (const text of ["Claude<mark>⟨U+202E⟩</mark>", "widgets (main)", "Fix it"]) expect(drawn).toContain(text);
    // Each line of the agent's words is in the box that says whose they are.
    const [, box = ""] = /<blockquote class="why">(.*)<\/blockquote>/.exec(drawn) ?? [];
    for (const text of ["<p>Safe.</p>", "<p>request x</p>", texts.notChecked]) expect(box).toContain(text);
    // What they say counts as no content.
    expect(shown(command(asking)).lines).toBe(shown(command()).lines);
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
    const facts = proof?.lines.map(({ label = "", text }) => [label, text]);
    expect(facts).toEqual([
      [texts.factHash, request.artifactHash],
      [texts.factArguments, "make · all"],
      [texts.proofFolder, "/w"],
      [texts.factRequest, request.requestId],
      [texts.factKey(request.enforcerId), shortFingerprint(request.sentBy.bundle)],
      [texts.factSession, "s1"],
      [texts.proofKind, "exec"],
      [texts.proofMoment, "run"],
      [texts.proofTool, "make"],
      [texts.proofFolder, "/w"],
      [texts.proofRepository, "/w"],
      [texts.proofDigest, "1".repeat(64)],
      [texts.proofAside, '/id⟨U+202E⟩ = a/0=1, a/1="x"'],
      [texts.proofAside, "/time = 5"],
      [texts.proofVariable, "HOME=/h⟨U+200B⟩"],
      [texts.proofVariable, "TOKEN=(set, not shown)"],
      [texts.proofFile, `/usr/bin/make, executable: SHA-256 ${DIGEST}`],
      [texts.proofFile, "/h/.bashrc, read by the shell at startup: no such file"],
    ]);
    const counted = content.sections.slice(0, -1).reduce((sum, part) => sum + part.lines.length, 0);
    expect([content.lines, content.files]).toEqual([counted, 0]);
    expect(blockedBy("dangerous", new Reading(content).shown)).toBeUndefined();
  });

  test("hashes and ids are in the proof and nowhere else; a program without a text is no file to open", () => {
    const text = "a\n";
    const files = [
      { path: "/usr/bin/make", role: "executable", digest: DIGEST, size: 9 },
      { path: "x.sh", role: "script", digest: sha256Hex(utf8(text)), size: 2, content: text },
    ];
    const content = shown(command({ files, baseRevision: "6fdc89c2", stdin: { digest: "3".repeat(64), size: 5 } }));
    const before = content.sections.slice(0, -1).flatMap((part) => [part.title, ...part.lines.map((one) => one.text)]);
    for (const hidden of [
      DIGEST,
      sha256Hex(utf8(text)),
      "3".repeat(64),
      request.requestId,
      request.artifactHash,
      "s1",
    ]) {
      expect(before.join("\n")).not.toContain(hidden);
      expect(content.sections.at(-1)?.lines.some((one) => one.text.includes(hidden))).toBe(true);
    }
    expect([content.files, before.includes("x.sh"), before.includes("/usr/bin/make")]).toEqual([1, true, false]);
  });
});
