// Our own keys in what travels: written in our namespace, and read under their former names too.

import { describe, expect, test, vi } from "vitest";

import { newRequestId, utf8 } from "../src/protocol/bytes.ts";
import { type Envelope, parseEnvelope, writeEnvelope } from "../src/protocol/envelope.ts";
import { hashWithout } from "../src/protocol/hash.ts";
import { parseObject } from "../src/protocol/json.ts";
import { newPin, type Party, Pins } from "../src/protocol/pins.ts";
import {
  buildPrompt,
  type OpenedPrompt,
  openPrompt,
  type PromptDraft,
  PromptRefusedError,
} from "../src/protocol/prompt.ts";
import { buildRequest, type OpenedRequest, openRequest } from "../src/protocol/request.ts";
import { seal } from "../src/protocol/seal.ts";
import { revoke, signStatement } from "../src/protocol/statement.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { type Device, newDevice, Random } from "./random.ts";

const NOW = Timestamp.ofMillis(Date.UTC(2026, 10, 16, 12));
const LATER = NOW.plus(3_600_000);
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const random = new Random(11);
const [robot, ada] = [await newDevice(random, "robot"), await newDevice(random, "ada")];
const pinned = (role: Party["role"], { id, keys }: Device): Pins =>
  new Pins().add(newPin({ role, id }, keys.bundle, NOW));

test("ids of requests are UUIDs of version 4, each another one", () => {
  const ids = Array.from({ length: 500 }, newRequestId);
  for (const id of ids) expect(id).toMatch(UUID);
  expect(new Set(ids).size).toBe(500);
});

describe("an artifact", () => {
  async function opened(inside: object): Promise<OpenedRequest> {
    const unhashed = {
      requestId: "r",
      artifactType: "command.review",
      repoRef: "repo:x",
      createdAt: NOW,
      expiresAt: LATER,
      payload: { argv: ["ls"] },
      artifactHashAlg: "SHA-256",
      ...inside,
    };
    const artifactHash = hashWithout(parseObject(JSON.stringify(unhashed)), "artifactHash");
    const [requestId, expiresAt] = ["r", `${LATER}`];
    const context = { kind: "artifact", requestId, artifactHash, enforcerId: "robot", expiresAt } as const;
    const content = utf8(JSON.stringify({ ...unhashed, artifactHash }));
    const ciphertext = await seal(robot.keys, context, content, [{ id: "ada", bundle: ada.keys.bundle }]);
    const body = { artifactType: "command.review", artifactHash, expiresAt, ciphertext: JSON.parse(ciphertext) };
    const head = { msgType: "approval.request", requestId, createdAt: NOW, sender: { enforcerId: "robot" } };
    const envelope = parseEnvelope(writeEnvelope(head, JSON.stringify(body)));
    return openRequest(envelope, ada, pinned("enforcer", robot), NOW);
  }

  test("is written with our own keys and its own session", async () => {
    const draft = { artifactType: "command.review", payload: "{}", repoRef: "x", repoName: "acme/widgets" } as const;
    const actions = [{ id: "a", caption: "A", style: "primary", decision: "approve" }] as const;
    const whole = { ...draft, expiresAt: LATER, session: "s1", supersedes: "r0", actions };
    const built = await buildRequest(whole, robot, pinned("approver", ada), NOW);
    const artifact = JSON.parse(built.artifact) as { requestId: string; sessionId: string; extensions: object };
    expect(artifact.requestId).toMatch(UUID);
    expect(artifact.sessionId).toBe("s1");
    expect(Object.keys(artifact.extensions)).toEqual([
      "org.countersign.salt",
      "org.countersign.repoName",
      "org.countersign.supersedes",
      "org.proto.requestedActions",
    ]);
    const pushed = parseEnvelope(built.envelope.replace('"artifact.submit"', '"approval.request"'));
    const read = await openRequest(pushed, ada, pinned("enforcer", robot), NOW);
    expect([read.session, read.repoName, read.supersedes, read.actions]).toEqual(["s1", "acme/widgets", "r0", actions]);
  });

  test.each([
    ["another request", "r0", "r0"],
    ["itself", "r", undefined],
    ["nothing", "", undefined],
    ["no id", "a\u0000b", undefined],
    ["no text", 5, undefined],
  ])("takes the place of %s", async (_, value, supersedes) => {
    expect((await opened({ extensions: { "org.countersign.supersedes": value } })).supersedes).toBe(supersedes);
    // It never had another name.
    expect((await opened({ extensions: { "org.proto.supersedes": value } })).supersedes).toBeUndefined();
  });

  test.each<[string, object, string | undefined, string | undefined]>([
    ["of now", { sessionId: "s", extensions: { "org.countersign.repoName": "n" } }, "s", "n"],
    ["of before", { extensions: { "org.proto.sessionId": "s", "org.proto.repoName": "n" } }, "s", "n"],
    [
      "with both",
      {
        sessionId: "member",
        extensions: {
          "org.proto.sessionId": "former",
          "org.proto.repoName": "former",
          "org.countersign.repoName": "present",
        },
      },
      "member",
      "present",
    ],
    [
      "with a broken one",
      { extensions: { "org.countersign.repoName": null, "org.proto.repoName": "former" } },
      undefined,
      undefined,
    ],
    ["with neither", {}, undefined, undefined],
  ])("%s is read", async (_, inside, session, repoName) => {
    const read = await opened(inside);
    expect([read.session, read.repoName]).toEqual([session, repoName]);
  });
});

const issue = { enforcerId: "robot", by: "ada", at: NOW };
const statement = await signStatement(ada.keys, issue, revoke(robot.keys.fingerprint));

describe("a prompt", () => {
  /** A prompt whose extensions are changed. */
  async function prompt(extensions: object, text: string, target: "agentChat" | "other"): Promise<Envelope> {
    const requestId = "p";
    const head = { requestId, artifactType: "prompt.send", createdAt: NOW, target, text, promptHashAlg: "SHA-256" };
    const unhashed = JSON.stringify({ ...head, extensions });
    const promptHash = hashWithout(parseObject(unhashed), "promptHash");
    const context = { kind: "prompt", requestId, promptHash, approverId: "ada", target } as const;
    const content = utf8(`${unhashed.slice(0, -1)},"promptHash":"${promptHash}"}`);
    const ciphertext = await seal(ada.keys, context, content, [{ id: "robot", bundle: robot.keys.bundle }]);
    const body = `{"promptHash":"${promptHash}","target":"${target}","ciphertext":${ciphertext}}`;
    const sender = { approverId: "ada" };
    return parseEnvelope(writeEnvelope({ msgType: "prompt.send", requestId, createdAt: NOW, sender }, body));
  }
  const opened = (envelope: Envelope): Promise<OpenedPrompt> =>
    openPrompt(envelope, robot, pinned("approver", ada), NOW);
  const refused = async (extensions: object): Promise<string> =>
    opened(await prompt(extensions, "go on", "agentChat")).then(
      () => "taken",
      (error: unknown) => (error instanceof PromptRefusedError ? error.reason : String(error)),
    );

  test("is written with our own keys", async () => {
    const draft = { target: "other", content: { statement }, expiresAt: LATER } as const;
    const built = await buildPrompt(draft, ada, "robot", pinned("enforcer", robot), NOW);
    expect(built.requestId).toMatch(UUID);
    expect((await opened(parseEnvelope(built.envelope))).content).toEqual({ statement });
    // The content is sealed, so what was written is seen where it is sealed.
    const written = vi.spyOn(crypto.subtle, "encrypt");
    await buildPrompt(draft, ada, "robot", pinned("enforcer", robot), NOW);
    const texts = written.mock.calls.map(([, , data]) => new TextDecoder().decode(data as Uint8Array));
    written.mockRestore();
    const content = JSON.parse(texts.find((text) => text.startsWith("{")) ?? "{}") as { extensions: object };
    const keys = ["org.countersign.salt", "org.countersign.expiresAt", "org.countersign.statement"];
    expect(Object.keys(content.extensions)).toEqual(keys);
  });

  test("that stops an agent names its session, and nothing else is taken for one", async () => {
    const draft = { target: "other", content: { stop: " " }, expiresAt: LATER, sessionId: "s" } as const;
    const build = (changed: Partial<PromptDraft>) =>
      buildPrompt({ ...draft, ...changed }, ada, "robot", pinned("enforcer", robot), NOW);
    const stop = await opened(parseEnvelope((await build({})).envelope));
    expect([stop.content, stop.sessionId]).toEqual([{ stop: "Stop this agent." }, "s"]);
    await expect(build({ target: "agentChat" })).rejects.toThrow("one session");
    const { sessionId: _, ...everywhere } = draft;
    await expect(buildPrompt(everywhere, ada, "robot", pinned("enforcer", robot), NOW)).rejects.toThrow("one session");
    const keys = { "org.countersign.salt": "x", "org.countersign.expiresAt": LATER };
    for (const value of [false, 1, "true", null])
      expect(await refused({ ...keys, "org.countersign.stop": value }), `${value}`).toBe("malformed");
    // It is for the target other, and for one session.
    expect(await refused({ ...keys, "org.countersign.stop": true })).toBe("malformed");
  });

  test("of an earlier program is taken", async () => {
    const former = { "org.proto.salt": "x", "org.proto.expiresAt": LATER };
    const words = await opened(await prompt(former, "go on", "agentChat"));
    expect([words.content, words.expiresAt.equals(LATER)]).toEqual([{ text: "go on" }, true]);
    const signed = { ...former, "org.proto.statement": JSON.parse(statement.source) as unknown };
    const told = await opened(await prompt(signed, "A signed statement about a device.", "other"));
    expect(told.content).toEqual({ statement });
  });

  test("is refused for what is under the new name, whatever is under the former one", async () => {
    const former = { "org.proto.salt": "x", "org.proto.expiresAt": LATER };
    expect(await refused(former)).toBe("taken");
    expect(await refused({ ...former, "org.countersign.expiresAt": NOW.plus(-3_600_000) })).toBe("expired");
    expect(await refused({ ...former, "org.countersign.expiresAt": null })).toBe("malformed");
    expect(await refused({ ...former, "org.countersign.salt": 1 })).toBe("malformed");
    expect(await refused({ ...former, "org.countersign.statement": {} })).toBe("malformed");
    expect(await refused({ "org.proto.expiresAt": LATER })).toBe("malformed");
    expect(await refused({ "org.countersign.salt": "x" })).toBe("malformed");
  });
});
