// Changes before an approval: what is offered, what an edit may say, and that a machine gets exactly what was written, or nothing.

import { describe, expect, test } from "vitest";

import { parseArtifact } from "../src/protocol/artifact.ts";
import { utf8 } from "../src/protocol/bytes.ts";
import { signDecision } from "../src/protocol/decision.ts";
import { applyEdit, editables, isEdited, isEditOf } from "../src/protocol/edit.ts";
import { parseEnvelope } from "../src/protocol/envelope.ts";
import { JsonObject, parseObject } from "../src/protocol/json.ts";
import { newPin, type Party, Pins } from "../src/protocol/pins.ts";
import { type Choice, decide, newNonce, verifyDecision } from "../src/protocol/reply.ts";
import {
  type BuiltRequest,
  buildRequest,
  type OpenedRequest,
  openRequest,
  type RequestDraft,
} from "../src/protocol/request.ts";
import { seal } from "../src/protocol/seal.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { type Edit, editSize, MAX_EDIT, readWords, writeWords } from "../src/protocol/words.ts";
import { type Device, newDevice, Random } from "./random.ts";

const NOW = Timestamp.ofMillis(Date.UTC(2026, 10, 16, 12));
const LATER = NOW.plus(3_600_000);

const random = new Random(11);
const [robot, ada] = [await newDevice(random, "robot"), await newDevice(random, "ada")];
const pinned = (role: Party["role"], { id, keys }: Device): Pins =>
  new Pins().add(newPin({ role, id }, keys.bundle, NOW));
const [enforcers, approvers] = [pinned("enforcer", robot), pinned("approver", ada)];

const MESSAGE = {
  tool_input: { command: "git push --force", content: "a\n", "a/b~c": "odd", list: ["one", "two"], count: 1 },
  argv: ["git", "push", "--force now"],
  none: [],
  mixed: ["a", 1],
};
const COMMAND = "/tool_input/command";

function payload(message: unknown): string {
  return JSON.stringify({ schema: "org.proto.payload", version: 2, call: { message } });
}

async function asked(more: Partial<RequestDraft>, message: unknown = MESSAGE) {
  const draft: RequestDraft = {
    artifactType: "command.review",
    payload: payload(message),
    repoRef: "repo:x",
    repoName: "acme/widgets",
    expiresAt: LATER,
    session: "s1",
    ...more,
  };
  const built = await buildRequest(draft, robot, approvers, NOW);
  const envelope = parseEnvelope(built.envelope.replace('"artifact.submit"', '"approval.request"'));
  return { built, opened: await openRequest(envelope, ada, enforcers, NOW) };
}

/** What is offered, by place. */
async function offered(edits: unknown): Promise<Record<string, string>> {
  const { opened } = await asked({ edits: edits as string[] });
  return Object.fromEntries(opened.edits.map(({ place, text }) => [place.source, text]));
}

describe("what may be changed", () => {
  test("is a text as it is, or the words of a command on one line", async () => {
    expect(await offered([COMMAND, "/argv", "/tool_input/a~1b~0c", "/tool_input/list/1"])).toEqual({
      [COMMAND]: "git push --force",
      "/argv": "git push '--force now'",
      "/tool_input/a~1b~0c": "odd",
      "/tool_input/list/1": "two",
    });
  });

  test.each([
    ["that is no list", COMMAND],
    ["that is empty", []],
    ["of nine", Array.from({ length: 9 }, (_, at) => `/tool_input/${at}`)],
    ["with something else than texts", [COMMAND, 1]],
    ["with no pointer", [COMMAND, "tool_input/command"]],
    ["of the whole message", [""]],
    ["of what is not there", [COMMAND, "/tool_input/other"]],
    ["of a place behind a list", ["/argv/3"]],
    ["of a number", [COMMAND, "/tool_input/count"]],
    ["of an object", ["/tool_input"]],
    ["of an empty list", ["/none"]],
    ["of a list with something else than texts", ["/mixed"]],
    ["of one member twice", [COMMAND, COMMAND]],
    ["of a list and a word of it", ["/argv", "/argv/1"]],
  ])("is nothing by an offer %s", async (_, edits) => {
    expect(await offered(edits)).toEqual({});
  });

  test("is nothing without an offer, or without a call", async () => {
    expect((await asked({})).opened.edits).toEqual([]);
    for (const message of [null, [], "text"])
      expect((await asked({ edits: [COMMAND] }, message)).opened.edits).toEqual([]);
    for (const other of ["{}", '{"call":{}}', '{"call":[]}'])
      expect((await asked({ edits: [COMMAND], payload: other })).opened.edits).toEqual([]);
  });

  test("is said to be changed by nothing but true", async () => {
    expect((await asked({ edited: true })).opened.isEdited).toBe(true);
    expect((await asked({})).opened.isEdited).toBe(false);
    const artifact = (await asked({ edited: true })).built.artifact;
    for (const other of ["false", "1", '"true"', "null", "{}"]) {
      const text = artifact.replace('"org.countersign.edited":true', `"org.countersign.edited":${other}`);
      expect(isEdited(parseArtifact(text)), other).toBe(text === artifact);
      expect(text).not.toBe(artifact);
    }
  });
});

describe("the words of a decision", () => {
  test("keep an edit as it was written", () => {
    const edit: Edit = { [COMMAND]: "a\r\n\tb\u202e\u0000 𝄞", "/__proto__": "", "/a~1b": "c" };
    expect(readWords(writeWords({ reason: "so", edit }))).toMatchObject({ reason: "so", edit });
    expect(JSON.parse(writeWords({ reason: "so" }))).toEqual({ reason: "so" });
  });

  test("have no edit that is empty, too long or something else than texts", () => {
    // An accent has two bytes, and one character.
    const left = MAX_EDIT - editSize({ "/a": "" });
    const long = (more: number): Edit => ({ "/a": "é".repeat(100) + "x".repeat(left - 200 + more) });
    expect(editSize(long(0))).toBe(MAX_EDIT);
    expect(readWords(writeWords({ edit: long(0) })).edit).toEqual(long(0));
    expect(() => readWords(writeWords({ edit: long(1) }))).toThrow("more than 32768 bytes");
    for (const edit of ["{}", "[]", '"x"', "null", '{"/a":1}', '{"/a":null}', '{"/a":"\\ud800"}', '{"/a":"","/a":""}'])
      expect(() => readWords(`{"edit":${edit}}`), edit).toThrow();
  });
});

const REJECTED: Choice = { outcome: "reject", scope: "once", validUntil: LATER, words: {} };

interface Asked {
  readonly built: BuiltRequest;
  readonly opened: OpenedRequest;
}

/** Signs a decision as a device does that does not look whether it may. */
async function careless({ opened }: Asked, { outcome, scope, validUntil, words }: Choice): Promise<string> {
  const { requestId, artifactHash, repoRef, enforcerId, session } = opened;
  const nonce = newNonce();
  const context = { kind: "hints", requestId, artifactHash, approverId: "ada", nonce } as const;
  const sealed = await seal(ada.keys, context, utf8(writeWords(words)), [
    { id: enforcerId, bundle: robot.keys.bundle },
  ]);
  return signDecision(ada.keys.signer, {
    requestId,
    artifactHashAlg: "SHA-256",
    artifactHash,
    repoRef,
    decision: outcome,
    scope,
    expiresAt: `${validUntil}`,
    nonce,
    sigAlg: "Ed25519",
    signerKeyId: ada.keys.fingerprint,
    policyHints: { sealed: JSON.parse(sealed) as unknown, sessionId: session },
  });
}

/** What the machine finds in such a decision. */
const verified = async (request: Asked, choice: Choice) =>
  verifyDecision(await careless(request, choice), request.built, robot, approvers, NOW);

const reasonOf = (action: Promise<unknown>): Promise<string> =>
  action.then(
    () => "accepted",
    (error: unknown) => (error as { reason?: string }).reason ?? String(error),
  );

describe("a machine", () => {
  const changed = (edit: Edit, more: Partial<Choice> = {}): Choice => ({ ...REJECTED, words: { edit }, ...more });

  test("takes a rejection with an edit of what it has offered", async () => {
    const request = await asked({ edits: [COMMAND, "/argv"] });
    const edit = { [COMMAND]: "git push --force-with-lease", "/argv": "git push" };
    const { source } = await decide(request.opened, changed(edit), ada, NOW);
    const found = await verifyDecision(source, request.built, robot, approvers, NOW);
    expect(found).toMatchObject({ outcome: "reject", scope: "once", words: { edit } });
  });

  test("refuses an edit of anything else, which a device does not sign", async () => {
    const request = await asked({ edits: [COMMAND, "/argv"] });
    const none = await asked({});
    const cases: readonly [Asked, Choice][] = [
      [request, changed({ [COMMAND]: "ls" }, { outcome: "approve" })],
      [request, changed({ [COMMAND]: "ls" }, { scope: "timebox" })],
      [request, changed({ "/tool_input/content": "b" })],
      [request, changed({ "/argv/0": "ls" })],
      [request, changed({ [COMMAND]: "git push --force" })],
      [request, changed({ "/argv": "git push '--force now'" })],
      [request, changed({ [COMMAND]: "ls", "/argv": "git push '--force now'" })],
      [none, changed({ [COMMAND]: "ls" })],
    ];
    for (const [one, choice] of cases) {
      expect(await reasonOf(decide(one.opened, choice, ada, NOW))).toBe("edit");
      expect(await reasonOf(verified(one, choice))).toBe("edit");
    }
    for (const edit of [{ [COMMAND]: "x".repeat(MAX_EDIT) }, {}]) {
      expect(await reasonOf(decide(request.opened, changed(edit), ada, NOW))).toBe("edit");
      expect(await reasonOf(verified(request, changed(edit)))).toBe("words");
    }
  });

  test("takes the approval of what it has made of an edit once only", async () => {
    const request = await asked({ edited: true, supersedes: "r0" });
    expect([request.opened.isEdited, request.opened.supersedes]).toEqual([true, "r0"]);
    const once: Choice = { ...REJECTED, outcome: "approve" };
    expect(await verified(request, once)).toMatchObject({ outcome: "approve" });
    expect(await verified(request, REJECTED)).toMatchObject({ outcome: "reject" });
    const more: readonly Choice[] = [
      { ...once, scope: "timebox" },
      { ...once, scope: "session" },
      { ...once, words: { pattern: { argv: ["ls", "*"] } } },
    ];
    for (const choice of more) {
      expect(await reasonOf(decide(request.opened, choice, ada, NOW))).toBe("edited");
      expect(await reasonOf(verified(request, choice))).toBe("edited");
      expect(await reasonOf(verified(await asked({}), choice))).toBe("accepted");
    }
  });
});

/** A message with texts and words at random places, and the pointers to some of them. */
function randomMessage(random: Random): { message: unknown; places: string[] } {
  const names = ["command", "content", "a/b", "c~d", "", "__proto__", "é\u202e", "0"];
  const places: string[] = [];
  const token = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");
  const member = (at: string, depth: number): string => {
    const kind = random.below(depth === 0 ? 3 : 5);
    if (kind <= 1) {
      places.push(at);
      return JSON.stringify(random.text());
    }
    if (kind === 2) return random.of(["1", "1.0", "9007199254740991", "null", "true", "[]", "{}", "1e2"]);
    if (kind === 3) {
      places.push(at);
      return JSON.stringify(Array.from({ length: 1 + random.below(4) }, () => random.text(12)));
    }
    return object(at, depth - 1);
  };
  const object = (at: string, depth: number): string => {
    const own = names.filter(() => random.isOneIn(2));
    return `{${own.map((name) => `${JSON.stringify(name)}: ${member(`${at}/${token(name)}`, depth)}`).join(" , ")}}`;
  };
  return { message: object("", 2), places };
}

/** The words in a line as `quoted` writes them. */
function split(line: string): string[] {
  const words = line.match(/(?:'[^']*'|\\'|[^ '\\])+/g) ?? [];
  return words.map((word) =>
    word.replace(/'([^']*)'|\\'/g, (whole, inner?: string) => (whole === "\\'" ? "'" : (inner ?? ""))),
  );
}

test("2,000 random edits are done exactly as they were written, or refused", async () => {
  const outcomes = { done: 0, refused: 0 };
  for (let round = 0; round < 2_000; round += 1) {
    const { message, places } = randomMessage(random);
    const edits = places.filter(() => !random.isOneIn(4)).slice(0, 9);
    const text = `{"schema":"org.proto.payload","version":2,"call":{"message":${message as string}}}`;
    const request = await asked({ edits, payload: text });
    const isOffered = edits.length >= 1 && edits.length <= 8;
    expect(request.opened.edits.map(({ place }) => place.source)).toEqual(isOffered ? edits : []);
    // Sometimes what is there already, and sometimes what was not offered.
    const chosen = places.filter(() => random.isOneIn(3));
    const now = (place: string): string => request.opened.edits.find((one) => one.place.source === place)?.text ?? "";
    const edit = Object.fromEntries(chosen.map((place) => [place, random.isOneIn(8) ? now(place) : random.text(60)]));
    const allowed =
      chosen.length > 0 && chosen.every((place) => isOffered && edits.includes(place) && edit[place] !== now(place));
    const choice: Choice = { ...REJECTED, words: { edit } };
    if (!allowed) {
      expect(await reasonOf(decide(request.opened, choice, ada, NOW))).toBe("edit");
      expect(await reasonOf(verified(request, choice))).toBe(chosen.length === 0 ? "words" : "edit");
      outcomes.refused += 1;
      continue;
    }
    const { source } = await decide(request.opened, choice, ada, NOW);
    const { words } = await verifyDecision(source, request.built, robot, approvers, NOW);
    expect(JSON.stringify(words.edit)).toBe(JSON.stringify(edit));
    checkDone(request, edit);
    outcomes.done += 1;
  }
  expect(outcomes.done).toBeGreaterThan(500);
  expect(outcomes.refused).toBeGreaterThan(500);
}, 300_000);

/** Carries out an edit as the machine does, and compares it with the message. */
function checkDone({ built, opened }: Asked, edit: Edit): void {
  const { payload: asked } = opened;
  const call = asked.members.get("call");
  const message = call instanceof JsonObject ? call.members.get("message") : undefined;
  if (!(message instanceof JsonObject)) throw new Error("there is no message");
  const isWords = (place: string): boolean => opened.edits.some((one) => one.place.source === place && one.isWords);
  const texts = Object.fromEntries(Object.entries(edit).filter(([place]) => !isWords(place)));
  if (Object.keys(texts).length < Object.keys(edit).length)
    expect(() => applyEdit(message, opened.edits, edit)).toThrow();
  if (Object.keys(texts).length === 0) return;
  const done = applyEdit(message, opened.edits, texts);
  // Everything else is what it was, with the digits of its numbers.
  const expected = Object.entries(texts).reduce((whole, [place, text]) => put(whole, place, text), message.source);
  expect(JSON.stringify(JSON.parse(done.source))).toBe(JSON.stringify(JSON.parse(expected)));
  expect(numbers(done.source)).toEqual(numbers(message.source));
  expect(built.artifact).toContain(message.source);
}

function put(source: string, place: string, text: string): string {
  const whole = JSON.parse(source) as unknown;
  const tokens = place
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = tokens.pop() ?? "";
  const inner = tokens.reduce((value, token) => (value as Record<string, unknown>)[token], whole) as object;
  Object.defineProperty(inner, last, { value: text, enumerable: true });
  return JSON.stringify(whole);
}

function numbers(source: string): string[] {
  const found: string[] = [];
  const walk = (value: unknown): void => {
    if (value instanceof JsonObject) for (const member of value.members.values()) walk(member);
    else if (value !== null && typeof value === "object" && "literal" in value) found.push(`${value.literal}`);
  };
  walk(parseObject(source));
  return found;
}

test("the words of a command are read back from their line", () => {
  for (let round = 0; round < 200; round += 1) {
    const argv = Array.from({ length: 1 + random.below(4) }, () => random.text(12));
    const artifact = {
      extensions: parseObject('{"org.countersign.edits":["/argv"]}'),
      payload: parseObject(payload({ argv })),
    };
    const [one] = editables(artifact as Parameters<typeof editables>[0]);
    expect(split(one?.text ?? "").join("\u0001")).toBe(argv.join("\u0001"));
    expect(isEditOf({ "/argv": one?.text ?? "" }, one === undefined ? [] : [one])).toBe(false);
  }
});
