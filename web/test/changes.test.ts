// A change before an approval on the screens: the fields, what differs, what became of it, and what opens in its place.

import { type ComponentChildren, h } from "preact";
import { renderToString } from "preact-render-to-string";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/page/app.ts";
import { type Card, Inbox } from "../src/page/inbox.ts";
import { AppContext } from "../src/page/parts.tsx";
import { AnswerBar } from "../src/page/review/answer.tsx";
import { changedLines, draftProblem, editOf, fieldsOf, madeOf, markedLines } from "../src/page/review/change.ts";
import { reviewDocument } from "../src/page/review/document.ts";
import { ChangeSheet } from "../src/page/review/editor.tsx";
import { ONCE, sessionOffer } from "../src/page/review/offer.ts";
import { Reading } from "../src/page/review/reading.ts";
import { ScopeSheet, WordsSheet } from "../src/page/review/sheets.tsx";
import { type Answer, sign } from "../src/page/review/sign.ts";
import { AfterChange, changeState } from "../src/page/screens/change.tsx";
import { HistoryScreen } from "../src/page/screens/history.tsx";
import { InboxScreen } from "../src/page/screens/inbox.tsx";
import { RequestScreen } from "../src/page/screens/request.tsx";
import type { SentRecord } from "../src/page/sent.ts";
import { changePins } from "../src/page/trust.ts";
import type { Approver } from "../src/protocol/approver.ts";
import { newPin } from "../src/protocol/pins.ts";
import type { RequestDraft } from "../src/protocol/request.ts";
import { MAX_EDIT } from "../src/protocol/words.ts";
import { texts } from "../src/texts.ts";
import { Desk, NOW, soon, status } from "./desk.ts";
import { newDevice, Random } from "./random.ts";

let desk: Desk;
const apps: App[] = [];
const opened: string[] = [];
beforeAll(async () => {
  vi.stubGlobal("window", { innerWidth: 360, innerHeight: 740, matchMedia: () => ({ matches: false }) });
  vi.stubGlobal("document", { visibilityState: "visible" });
  vi.stubGlobal("location", { hash: "", replace: (hash: string) => opened.push(hash) });
  // Nothing is ever on a screen here.
  vi.stubGlobal("IntersectionObserver", class {});
  desk = await Desk.open();
});
afterAll(() => vi.unstubAllGlobals());
beforeEach(() => {
  desk.now = NOW;
  opened.length = 0;
  vi.spyOn(Date, "now").mockImplementation(() => NOW.millis);
});
afterEach(() => {
  for (const app of apps.splice(0)) {
    app.live.stop();
    app.answers.stop();
  }
  vi.restoreAllMocks();
});

const COMMAND = "/tool_input/command";

/** The payload of a command, as a hook asks for it. */
function bash(command: string, more: object = {}): string {
  return JSON.stringify({
    schema: "org.proto.payload",
    version: 2,
    state: "examined",
    shell: command,
    cwd: "/w",
    effects: [],
    call: {
      kind: "hook.claude",
      moment: "PreToolUse",
      tool: "Bash",
      folder: "/w",
      message: { tool_name: "Bash", tool_input: { command, ...more } },
      shown: ["/tool_name", COMMAND],
    },
  });
}

const asked = (command: string): Partial<RequestDraft> => ({ payload: bash(command), edits: [COMMAND], session: "s1" });

async function page(gateway: Partial<Approver> = {}): Promise<App> {
  const silent: Partial<Approver> = {
    sendDecision: async () => undefined,
    receipt: async () => undefined,
    acknowledge: async () => undefined,
    status: async (id) => status(id, "pendingApproval"),
    ...gateway,
  };
  const app = await desk.tab(new App(), silent);
  apps.push(app);
  app.set({ phase: "ready", isOnline: true });
  return app;
}

const drawn = (app: App, screen: ComponentChildren): string =>
  renderToString(h(AppContext.Provider, { value: app, children: screen }));
const inbox = (app: App): string => drawn(app, h(InboxScreen, {}));
const request = (app: App, id: string): string => drawn(app, h(RequestScreen, { id }));
const history = (app: App): string => drawn(app, h(HistoryScreen, {}));

function known({ request, payload }: Card) {
  if (request === undefined || payload === undefined) throw new Error("it was not opened");
  return { request, payload };
}

function bar(app: App, card: Card): string {
  const { request, payload } = known(card);
  const content = reviewDocument(request, payload);
  const props = { card, content, shown: new Reading(content).shown, openNext: () => undefined };
  return drawn(app, h(AnswerBar, props));
}

const change = (edit: Record<string, string>): Answer => ({
  outcome: "reject",
  offer: ONCE,
  reason: "",
  action: undefined,
  edit,
  shown: { files: 0, ofFiles: 0, lines: 1, ofLines: 1, unread: 0 },
  isSerious: false,
});

describe("the fields", () => {
  const fields = async (message: object, edits: string[], more: object = {}) => {
    const payload = JSON.stringify({ ...(JSON.parse(bash("ls", message)) as object), ...more });
    const card = known(await desk.card(await page(), { payload, edits }));
    return fieldsOf(card.request.edits, card.payload);
  };

  test("have the names that people know", async () => {
    const texts_ = { content: "a", new_string: "b", patch: "c", other: "d\u202e", edits: [{ new_string: "e" }] };
    const names = [
      COMMAND,
      ...["content", "new_string", "patch", "other", "edits/0/new_string"].map((n) => `/tool_input/${n}`),
    ];
    expect((await fields(texts_, names)).map(({ label }) => label)).toEqual([
      "Command",
      "New content of the file",
      "New text 1",
      "Patch",
      "other",
      "New text 2",
    ]);
  });

  test("keep line breaks as they were, and are missing where they can't", async () => {
    const names = ["crlf", "mixed", "lone", "lf"].map((name) => `/tool_input/${name}`);
    const all = await fields({ crlf: "a\r\nb\r\n", mixed: "a\r\nb\n", lone: "a\rb", lf: "a\nb" }, names);
    expect(all.map(({ place, before }) => [place, before])).toEqual([
      ["/tool_input/crlf", "a\nb\n"],
      ["/tool_input/lf", "a\nb"],
    ]);
    expect(editOf(all, { "/tool_input/crlf": "a\n\nc\n", "/tool_input/lf": "a\nb" })).toEqual({
      "/tool_input/crlf": "a\r\n\r\nc\r\n",
    });
    // What was written and taken back is no change.
    expect(editOf(all, { "/tool_input/crlf": "a\nb\n" })).toEqual({});
  });

  test("are none where the call is shown as JSON", async () => {
    expect(await fields({}, [COMMAND], { more: 1 })).toEqual([]);
  });

  test("say why a draft can't be sent", async () => {
    const all = await fields({ content: "x" }, [COMMAND, "/tool_input/content"]);
    const problem = (draft: Record<string, string>): string => draftProblem(all, draft);
    expect(problem({})).toBe(texts.changeNothing);
    expect(problem({ [COMMAND]: "ls" })).toBe(texts.changeNothing);
    expect(problem({ [COMMAND]: " \n" })).toBe(texts.changeEmpty);
    expect(problem({ "/tool_input/content": "" })).toBe("");
    expect(problem({ [COMMAND]: "ls -l" })).toBe("");
    const long = "é".repeat(MAX_EDIT / 2);
    expect(problem({ [COMMAND]: long })).toContain("Too long to send");
    expect(problem({ [COMMAND]: long.slice(20) })).toBe("");
  });

  test("show what can't be seen, and not what anybody sees", () => {
    expect(markedLines("a\tb\nok\n\u200bc\td")).toEqual([{ number: 3, text: "⟨U+200B⟩c⟨⇥⟩d" }]);
  });
});

test("what differs is in the lines that are shown, for 2,000 random changes", () => {
  const random = new Random(5);
  for (let round = 0; round < 2_000; round += 1) {
    const words = ["a", "b", "", "c d", "--- x", "@@ -1 +1 @@"];
    const before = Array.from({ length: 1 + random.below(12) }, () => random.of(words));
    const after = before.flatMap((line) =>
      random.isOneIn(5)
        ? []
        : random.isOneIn(5)
          ? [random.of(words), line]
          : random.isOneIn(6)
            ? [random.of(words)]
            : [line],
    );
    const [one, other] = [before.join("\n"), after.join("\n")];
    const lines = changedLines(one, other).filter(({ kind }) => kind !== "hunk");
    const shown = (at: 0 | 1): Map<number, string> =>
      new Map(
        lines.flatMap(({ numbers, text }) => (numbers?.[at] === undefined ? [] : [[numbers[at], text.slice(1)]])),
      );
    const [first, second] = [shown(0), shown(1)];
    for (const [at, text] of first) expect(text).toBe(one.split("\n")[at - 1]);
    for (const [at, text] of second) expect(text).toBe(other.split("\n")[at - 1]);
    const rest = (text: string, seen: Map<number, string>): string[] =>
      text.split("\n").filter((_, at) => !seen.has(at + 1));
    // What is not shown is the same in both.
    expect(rest(one, first)).toEqual(rest(other, second));
    expect(lines.some(({ kind }) => kind !== "text")).toBe(one !== other);
  }
});

describe("a change", () => {
  /** A page on which a command was changed. */
  async function changed(gateway: Partial<Approver> = {}) {
    // Whoever watches an answer sleeps, and time passes.
    desk.now = NOW;
    const app = await page(gateway);
    const card = await desk.card(app, asked("git push --force"));
    app.set({ inbox: new Inbox([card]), route: { name: "request", id: card.requestId } });
    await sign(app, card, change({ [COMMAND]: "git push\nls" }));
    return { app, card };
  }

  test("can be made where it is offered, and not elsewhere", async () => {
    const app = await page();
    const [offered, not] = [await desk.card(app, asked("ls")), await desk.card(app, { payload: bash("ls") })];
    app.set({ inbox: new Inbox([offered, not]) });
    expect(request(app, offered.requestId)).toContain(texts.change);
    expect(request(app, not.requestId)).not.toContain(texts.change);
    const sheet = drawn(app, h(ChangeSheet, { ...known(offered), close: () => undefined, send: () => undefined }));
    expect(sheet).toContain(texts.changeNote("robot"));
    expect(sheet).toMatch(/<button[^>]*disabled[^>]*>Send the change/);
    expect(sheet).toContain(">ls</textarea>");
  });

  test("is a rejection that is called a change, in the list of answers too", async () => {
    const sendDecision = vi.fn(async () => undefined);
    const { app, card } = await changed({ sendDecision });
    expect(sendDecision).toHaveBeenCalledTimes(1);
    const record = app.state.sent.get(card.requestId);
    expect(record).toMatchObject({ outcome: "reject", scope: "once", edit: { [COMMAND]: "git push\nls" } });
    expect(history(app)).not.toContain(`${texts.rejected} ·`);
    expect(request(app, card.requestId)).not.toContain("rejected");
    expect(history(app)).toContain(texts.changedTo("git push"));
    expect(request(app, card.requestId)).toContain(texts.youChanged);
    expect(request(app, card.requestId)).toContain(texts.changeState.waits("robot"));
  });

  test("is not signed if it was not offered", async () => {
    const sendDecision = vi.fn(async () => undefined);
    const app = await page({ sendDecision });
    const card = await desk.card(app, asked("ls"));
    for (const edit of [{ "/tool_name": "x" }, { [COMMAND]: "ls" }, {}])
      await expect(sign(app, card, change(edit))).rejects.toThrow("can't be changed in this way");
    expect(sendDecision).not.toHaveBeenCalled();
  });

  test("says that nothing was run if the machine does not ask again, or does not take it", async () => {
    const { app, card } = await changed();
    const record = app.state.sent.get(card.requestId) as SentRecord;
    const at = NOW.millis;
    expect(changeState(record, undefined, at + 15_000)).toBe("waits");
    expect(changeState(record, undefined, at + 15_001)).toBe("silent");
    expect(changeState(record, "r2", at + 99_000)).toBe("asked");
    const refused = {
      ...record,
      receipt: { outcome: { outcome: "refused", reason: "a rule" }, at: `${NOW}` },
    } as const;
    expect(changeState(refused, undefined, at)).toBe("refused");
    const applied = { ...record, receipt: { outcome: { outcome: "applied" }, at: `${NOW}` } } as const;
    expect(changeState(applied, undefined, at)).toBe("waits");
    expect(changeState({ ...record, failed: { kind: "expired", text: "" } }, undefined, at)).toBe("failed");
    desk.now = NOW;
    // What comes next is what the machine makes of the change.
    const next = (): string => drawn(app, h(AfterChange, { record, children: "next" }));
    expect(next()).toBe("");
    desk.now = NOW.plus(16_000);
    expect(next()).toBe("next");
    expect(request(app, card.requestId)).toContain(texts.changeState.silent("robot"));
    for (const state of ["silent", "refused"] as const)
      expect(texts.changeState[state]("m")).toContain("Nothing was run");
  });

  /** What arrives after a change. */
  async function arrives(more: (old: string) => Partial<RequestDraft>, machine = desk.robot, isOpen = true) {
    const listed: Awaited<ReturnType<Desk["request"]>>[] = [];
    const { app, card } = await changed({ list: async () => ({ envelopes: [...listed], isComplete: true }) });
    if (!isOpen) app.set({ route: { name: "inbox" } });
    await changePins(app, (pins) => pins.add(newPin({ role: "enforcer", id: "other" }, other.keys.bundle, NOW)));
    const arriving = await desk.request(more(card.requestId), machine);
    listed.push(arriving);
    app.live.start();
    await soon(() => expect(app.state.inbox.get(arriving.requestId)).toBeDefined());
    return { app, old: card, id: arriving.requestId, next: app.state.inbox.get(arriving.requestId) as Card };
  }
  let other: Awaited<ReturnType<typeof newDevice>>;
  beforeAll(async () => {
    other = await newDevice(new Random(9), "other");
  });

  test("opens in place as what the machine has made of it, with what differs", async () => {
    const { app, old, id, next } = await arrives((supersedes) => ({
      ...asked("git push\nls"),
      edited: true,
      supersedes,
    }));
    expect(opened).toEqual([`#/request/${id}`]);
    const screen = request(app, id);
    expect(screen).toContain(texts.yourChange);
    expect(screen).toContain(texts.yourChangeNote);
    expect(screen).not.toContain(texts.replaces);
    expect(screen).not.toContain("text you sent");
    expect(inbox(app)).toContain(texts.yourChange);
    const before = app.state.changed.get(old.requestId) ?? [];
    const made = madeOf(before, { [COMMAND]: "git push\nls" }, known(next).payload);
    expect(made.map(({ lines }) => lines.map(({ kind, text }) => [kind, text]))).toEqual([
      [
        ["removed", "-git push --force"],
        ["added", "+git push"],
        ["added", "+ls"],
      ],
    ]);
    await soon(() => expect(request(app, old.requestId)).toContain(texts.changeState.asked("robot")));
  });

  test("is approved once only, and can be changed again", async () => {
    const { app, next } = await arrives((supersedes) => ({ ...asked("git push\nls"), edited: true, supersedes }));
    const { request: made, payload } = known(next);
    expect(sessionOffer({ ...made, isEdited: false }, payload)).toBeDefined();
    expect(sessionOffer(made, payload)).toBeUndefined();
    const sheet = drawn(
      app,
      h(ScopeSheet, { request: made, payload, chosen: ONCE, choose: () => undefined, close: () => undefined }),
    );
    expect(sheet).toContain(texts.scopeOnlyOnceChanged);
    for (const name of [texts.scopeSession, texts.scopeHour]) expect(sheet).not.toContain(name);
    expect(bar(app, next)).toContain(texts.onlyOnce);
    expect(request(app, next.requestId)).toContain(texts.change);
    const hour = { ...ONCE, scope: "timebox" } as const;
    const approval: Answer = { ...change({}), outcome: "approve", offer: hour };
    desk.now = NOW;
    await expect(sign(app, next, approval)).rejects.toThrow("once only");
    expect(bar(app, await desk.card(app, asked("ls")))).toContain(texts.scopeOnce);
  });

  test("says so if the machine asks about another text", async () => {
    const { app, id } = await arrives((supersedes) => ({ ...asked("git push -f"), edited: true, supersedes }));
    expect(request(app, id)).toContain(texts.changeOther("robot"));
  });

  test.each([
    ["on another screen", asked("x"), true, false],
    ["without the mark", asked("x"), false, true],
  ])("does not open by itself %s", async (_, draft, edited, isOpen) => {
    await arrives((supersedes) => ({ ...draft, edited, supersedes }), desk.robot, isOpen);
    expect(opened).toEqual([]);
  });

  test.each([
    ["another machine says", (old: string) => old, true],
    ["is of a request that this device has not changed", () => "r0", false],
  ])("is not what %s", async (_, supersedes, isForeign) => {
    const more = (old: string) => ({ ...asked("x"), edited: true, supersedes: supersedes(old) });
    const { app, id, next } = await arrives(more, isForeign ? other : desk.robot);
    expect(opened).toEqual([]);
    expect(request(app, id)).toContain(texts.replacesChanged);
    expect(request(app, id)).not.toContain(texts.yourChangeNote);
    // Once only it is all the same.
    expect(bar(app, next)).toContain(texts.onlyOnce);
  });
});

test("another command is suggested only where there is a way", () => {
  const sheet = (suggest?: () => void): string =>
    renderToString(
      h(WordsSheet, { machine: "m", close: () => undefined, answer: () => undefined, canApprove: false, suggest }),
    );
  expect(sheet()).not.toContain(texts.suggest);
  expect(sheet(() => undefined)).toContain(texts.suggest);
  expect(texts.suggestion("ls")).toBe("Run this instead:\nls");
});
