// Both ends of this library at a real gateway: joining, pairing, hearing over each transport, deciding, receipts, prompts.

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { Approver } from "../../src/protocol/approver.ts";
import { effectHash, readArtifact } from "../../src/protocol/artifact.ts";
import { readBundle, verifyBundle } from "../../src/protocol/bundle.ts";
import { ApproverChannel, type ChannelEvent, type ChannelSettings } from "../../src/protocol/channel.ts";
import { parseEnvelope, writeEnvelope } from "../../src/protocol/envelope.ts";
import { CallError, Http } from "../../src/protocol/http.ts";
import { InvitationError, join, previewInvitation } from "../../src/protocol/join.ts";
import { formatBundle, parseBundle } from "../../src/protocol/keys.ts";
import { formatPairingLink, parseJoinLink, parsePairingLink } from "../../src/protocol/link.ts";
import { id, text } from "../../src/protocol/members.ts";
import { typedDigits, verifyLinkAnswer } from "../../src/protocol/pairing.ts";
import { newPin, Pins } from "../../src/protocol/pins.ts";
import { openPrompt } from "../../src/protocol/prompt.ts";
import { receiptSession, signReceipt } from "../../src/protocol/receipt.ts";
import { decide, verifyDecision } from "../../src/protocol/reply.ts";
import { type BuiltRequest, buildRequest, OpenError } from "../../src/protocol/request.ts";
import { sealSnapshot } from "../../src/protocol/session.ts";
import { Timestamp } from "../../src/protocol/timestamp.ts";
import type { Transport } from "../../src/protocol/transport.ts";
import { type Device, newDevice, Random } from "../random.ts";
import { Gateway } from "./gateway.ts";

const gateway = new Gateway();
const random = new Random(Date.now());
const now = (): Timestamp => Timestamp.ofMillis(Date.now());
let robot: Device;
let machine: Http;
const sockets: WebSocket[] = [];

beforeAll(async () => {
  await gateway.start();
  robot = await newDevice(random, "robot");
  machine = new Http({ gateway: gateway.url, credential: gateway.keys.enforcer });
});
afterAll(async () => {
  for (const socket of sockets) socket.close();
  await gateway.remove();
});

/** An approver with a credential of its own, by invitation, who calls the gateway in this way. */
async function newApprover(name: string, via: typeof fetch = fetch): Promise<Approver> {
  const operator = new Http({ gateway: gateway.url, credential: gateway.keys.operator });
  const body = JSON.stringify({ role: "approver", id: name });
  const answer = await operator.send({ method: "POST", path: "/platform/v1/invitations", body });
  const invitation = answer.read((members) => members.required("invitation", text));
  const link = parseJoinLink(`${gateway.url}/join#${invitation}`);
  expect(await previewInvitation(link)).toMatchObject({ role: "approver", id: name });
  const joined = await join(link);
  expect(await previewInvitation(link)).toBe("invalid");
  expect(joined).toMatchObject({ role: "approver", id: name, gateway: gateway.url });
  await expect(join(link)).rejects.toBeInstanceOf(InvitationError);
  const { keys } = await newDevice(random);
  return new Approver(new Http({ gateway: gateway.url, credential: joined.credential, fetch: via }), name, keys);
}

async function startPairing(): Promise<{ code: string; nonce: string }> {
  const body = JSON.stringify({
    enforcerId: robot.id,
    publicKey: formatBundle(robot.keys.bundle),
    enforcerLabel: "robby",
  });
  const answer = await machine.send({ method: "POST", path: "/v1/pairing/initiate", body });
  return answer.read((members) => ({ code: members.required("code", text), nonce: members.required("nonce", id) }));
}

async function answered(nonce: string) {
  const answer = await machine.send({ method: "GET", path: `/v1/pairing/status/${nonce}` });
  const { approverId, publicKey } = answer.read((members) => ({
    approverId: members.required("approverId", id),
    publicKey: members.required("publicKey", text),
  }));
  return { enforcerId: robot.id, enforcer: robot.keys.bundle, approverId, approver: parseBundle(publicKey), nonce };
}

/** Pairs by link; returns the pins of both sides. */
async function pair(approver: Approver): Promise<{ adas: Pins; robots: Pins }> {
  const { code, nonce } = await startPairing();
  const secret = random.bytes(16);
  const link = formatPairingLink({
    gateway: gateway.url,
    code,
    enforcerId: robot.id,
    fingerprint: robot.keys.fingerprint,
    secret,
  });
  const paired = await approver.pairByLink(parsePairingLink(link));
  expect(paired).toMatchObject({ digits: undefined, enforcerLabel: "robby" });
  const transcript = await answered(nonce);
  verifyLinkAnswer(transcript, secret);
  const robots = new Pins().add(newPin({ role: "approver", id: transcript.approverId }, transcript.approver, now()));
  return { adas: new Pins().add(paired.pin), robots };
}

async function submit(robots: Pins, seconds = 600, supersedes?: string): Promise<BuiltRequest> {
  const payload = JSON.stringify({ schema: "org.proto.payload", version: 1, argv: ["ls"], cwd: "/", effects: [] });
  const draft = {
    artifactType: "command.review",
    payload,
    repoRef: "repo:x",
    repoName: "acme/widgets",
    expiresAt: now().plus(seconds * 1_000),
    ...(supersedes === undefined ? {} : { supersedes }),
  } as const;
  const built = await buildRequest(draft, robot, robots, now());
  await machine.send({ method: "POST", path: "/v1/artifacts", body: built.envelope, idempotencyKey: built.requestId });
  return built;
}

/** A channel whose events can be waited for. */
function listen(approver: Approver, pins: () => Pins, settings: ChannelSettings) {
  const events: ChannelEvent[] = [];
  const channel = new ApproverChannel(approver, pins, (event) => events.push(event), settings);
  const running = channel.run();
  const until = async (what: string, is: (event: ChannelEvent) => boolean): Promise<ChannelEvent> => {
    for (let round = 0; round < 300; round += 1) {
      const found = events.find(is);
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`no ${what} within 15 s; heard ${JSON.stringify(events.map((event) => event.type))}`);
  };
  const stop = async (): Promise<void> => {
    channel.stop();
    await running;
  };
  return { channel, events, until, stop };
}

const isRefresh = (text: string, requestId: string): boolean => {
  const message = JSON.parse(text) as { msgType: string; requestId?: string };
  return message.msgType === "refresh.request" && message.requestId === requestId;
};

/** What the gateway sends to the machine over a WebSocket from now on. */
async function listenAsMachine(): Promise<string[]> {
  const answer = await machine.send({ method: "POST", path: "/platform/v1/tickets" });
  const ticket = answer.read((members) => members.required("ticket", text));
  const address = `${gateway.url.replace(/^http/, "ws")}/v1/ws?role=enforcer&id=robot`;
  const socket = new WebSocket(address, [`ticket.${ticket}`]);
  const messages: string[] = [];
  socket.onmessage = ({ data }) => void messages.push(`${data}`);
  await new Promise((resolve) => {
    socket.onopen = resolve;
  });
  sockets.push(socket);
  return messages;
}

async function until(what: string, is: () => boolean): Promise<void> {
  for (let round = 0; round < 300; round += 1) {
    if (is()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`no ${what} within 15 s`);
}

const isRequest = (requestId: string) => (event: ChannelEvent) =>
  event.type === "request" && event.item.requestId === requestId;

describe("at a real gateway", () => {
  test("pairing by typed code shows the same digits", async () => {
    const approver = await newApprover("carol");
    const { code, nonce } = await startPairing();
    const paired = await approver.pairByCode(code);
    expect(paired.digits).toMatch(/^(\d{5} ){5}\d{5}$/);
    expect(typedDigits(await answered(nonce))).toBe(paired.digits);
    const pairs = await approver.pairs();
    expect(pairs.map((entry) => [entry.enforcerId, entry.approverId, entry.enforcerLabel])).toEqual([
      ["robot", "carol", "robby"],
    ]);
    await approver.removePair(pairs[0]?.pairId ?? "");
    expect(await approver.pairs()).toEqual([]);
    await expect(approver.pairByCode(code)).rejects.toMatchObject({ status: 404 });
  });

  for (const transport of ["websocket", "sse", "poll"] as Transport[]) {
    test(`a request is heard over ${transport}, decided, and its receipt verified`, async () => {
      const approver = await newApprover(`ada-${transport}`);
      const { adas, robots } = await pair(approver);
      const waiting = await submit(robots);
      const heard = listen(approver, () => adas, { transports: [transport], pollMillis: 300 });
      expect(await heard.until("connection", (event) => event.type === "connected")).toMatchObject({ transport });
      await heard.until("request that waited", isRequest(waiting.requestId));
      const fresh = await submit(robots);
      const event = await heard.until("new request", isRequest(fresh.requestId));
      if (event.type !== "request" || event.item.opened instanceof OpenError) throw new Error(JSON.stringify(event));
      const choice = {
        outcome: "approve",
        scope: "once",
        validUntil: now().plus(60_000),
        words: { reason: "fine", shown: "all" },
      } as const;
      const sent = await approver.decide(event.item.opened, choice);
      const answer = await machine.send({ method: "GET", path: `/v1/exchanges/${fresh.requestId}/wait?timeout=5` });
      const verified = await verifyDecision(answer.envelope().body.source, fresh, robot, robots, now());
      expect(verified).toMatchObject({ outcome: "approve", words: { reason: "fine", shown: "all" }, hash: sent.hash });
      await approver.sendDecision(sent);
      const other = approver.decide(event.item.opened, { ...choice, outcome: "reject" });
      await expect(other).rejects.toMatchObject({ gatewayCode: "AlreadyDecidedConflict" });
      expect((await approver.status(fresh.requestId)).decision?.source).toBe(sent.source);

      expect(await approver.receipt(sent, 1, adas)).toBeUndefined();
      await expect(approver.bundle(fresh.requestId, adas)).rejects.toMatchObject({ code: "not-reported" });
      const effect = effectHash("command.review", readArtifact(fresh.artifact).payload, "acme/widgets");
      const receipt = await signReceipt(robot.keys.signer, {
        requestId: fresh.requestId,
        use: 1,
        decisionHash: sent.hash,
        decisionNonce: sent.nonce,
        effectHash: effect,
        enforcerId: "robot",
        at: `${now()}`,
        outcome: { outcome: "applied", exitStatus: 0 },
      });
      const draft = {
        sessionId: receiptSession(fresh.requestId, 1),
        snapshotId: "receipt",
        snapshotType: "summary",
        payload: receipt,
      } as const;
      const snapshot = await sealSnapshot(
        draft,
        robot,
        [{ id: approver.identity.id, bundle: approver.identity.keys.bundle }],
        now(),
      );
      // The credential of `dev` is for any id, so the envelope says whose event it is.
      const head = {
        msgType: "session.snapshot",
        requestId: draft.sessionId,
        createdAt: now(),
        sender: { enforcerId: "robot" },
      };
      await machine.send({ method: "POST", path: "/v1/session/event", body: writeEnvelope(head, snapshot) });
      expect((await approver.receipt(sent, 1, adas))?.outcome).toEqual({ outcome: "applied", exitStatus: 0 });
      const report = await verifyBundle(readBundle(await approver.bundle(fresh.requestId, adas)), adas);
      expect(report.findings).toMatchObject({
        signature: "proven",
        receipt: "proven",
        decision: "proven",
        enforcer: "proven",
        artifact: "unproven",
      });
      // With what it has kept, it proves what was asked and done too.
      const asked = { artifact: event.item.opened.artifact, words: '{"reason":"fine","shown":"all"}' };
      const whole = readBundle(await approver.bundle(fresh.requestId, adas, asked));
      expect(whole.words).toMatchObject({ reason: "fine", shown: "all" });
      expect((await verifyBundle(whole, adas)).findings).toMatchObject({
        artifact: "proven",
        about: "proven",
        effect: "proven",
        words: "unproven",
      });
      const another = { ...asked, artifact: waiting.artifact };
      const mixed = readBundle(await approver.bundle(fresh.requestId, adas, another));
      expect((await verifyBundle(mixed, adas)).findings).toMatchObject({ about: "wrong" });

      const withdrawal = JSON.stringify({
        msgType: "exchange.withdrawn",
        requestId: waiting.requestId,
        createdAt: now(),
        sender: { enforcerId: "robot" },
        body: {},
      });
      await machine.send({ method: "POST", path: `/v1/exchanges/${waiting.requestId}/withdraw`, body: withdrawal });
      // A WebSocket carries the withdrawal. A listing could be faster, and does not say why a request is gone.
      if (transport !== "websocket") heard.channel.wake();
      const gone = await heard.until(
        "end of the request",
        (it) => it.type === "gone" && it.requestId === waiting.requestId,
      );
      if (transport === "websocket") {
        expect(gone).toMatchObject({ end: "withdrawn" });
        await heard.until("snapshot", (it) => it.type === "session" && it.msgType === "session.snapshot");
      }
      await heard.stop();
      const requests = heard.events.flatMap((it) => (it.type === "request" ? [it.item.requestId] : []));
      expect(requests).toHaveLength(new Set(requests).size);
    });
  }

  test("a late answer is refused, the request is asked for again, and the machine's next one says so", async () => {
    const approver = await newApprover("rita");
    const { adas, robots } = await pair(approver);
    const messages = await listenAsMachine();
    const late = await submit(robots, 2);
    const [item] = await approver.inbox(adas);
    if (item === undefined || item.opened instanceof OpenError) throw new Error("the request did not open");
    expect(item.opened.supersedes).toBeUndefined();
    const choice = { outcome: "approve", scope: "once", validUntil: now().plus(60_000), words: {} } as const;
    const signed = await decide(item.opened, choice, approver.identity, now());
    await new Promise((resolve) => setTimeout(resolve, late.expiresAt.millis - Date.now() + 500));
    const refusal = { status: 409, gatewayCode: "PROTO_ERR_EXPIRED" };
    await expect(approver.sendDecision(signed)).rejects.toMatchObject(refusal);
    await approver.refresh(late.requestId);
    await until("the refresh", () => messages.some((text) => isRefresh(text, late.requestId)));
    const next = await submit(robots, 600, late.requestId);
    const opened = (await approver.inbox(adas)).map((one) => one.opened);
    expect(opened).toMatchObject([{ requestId: next.requestId, supersedes: late.requestId }]);
    await expect(approver.refresh("another")).rejects.toMatchObject({ status: 404 });
  });

  test("without tickets, and without the id of the machine, a link pairs and a stream carries requests", async () => {
    let asked = 0;
    const other: typeof fetch = async (url, init) => {
      if (`${url}`.endsWith("/platform/v1/tickets")) {
        asked += 1;
        return new Response('{"error":"no such route"}', { status: 404 });
      }
      const answer = await fetch(url, init);
      if (!`${url}`.includes("/v1/pairing/resolve/")) return answer;
      const { enforcerId, ...four } = (await answer.json()) as Record<string, unknown>;
      expect(enforcerId).toBe("robot");
      return new Response(JSON.stringify(four), { status: answer.status });
    };
    const approver = await newApprover("olga", other);
    const { adas, robots } = await pair(approver);
    const heard = listen(approver, () => adas, {});
    expect(await heard.until("connection", (event) => event.type === "connected")).toMatchObject({ transport: "sse" });
    const built = await submit(robots);
    await heard.until("request", isRequest(built.requestId));
    expect(asked).toBe(1);
    expect(heard.events.map((event) => event.type)).not.toContain("disconnected");
    await heard.stop();
  });

  test("prompts arrive, and what became of them is heard", async () => {
    const approver = await newApprover("paula");
    const { adas, robots } = await pair(approver);
    const heard = listen(approver, () => adas, { transports: ["websocket"] });
    await heard.until("connection", (event) => event.type === "connected");
    const content = { text: "use the other branch" };
    const draft = { target: "agentChat", content, expiresAt: now().plus(60_000) } as const;
    const prompt = await approver.buildPrompt("robot", draft, adas);
    await approver.sendPrompt(prompt);
    const opened = await openPrompt(parseEnvelope(prompt.envelope), robot, robots, now());
    expect(opened.content).toEqual(content);
    const ack = { requestId: prompt.requestId, promptHash: prompt.promptHash, status: "delivered", ackAt: now() };
    await machine.send({ method: "POST", path: "/v1/prompt", body: JSON.stringify(ack) });
    const event = await heard.until("acknowledgement", (it) => it.type === "prompt-ack");
    expect(event).toMatchObject({ requestId: prompt.requestId, status: "delivered" });
    await heard.stop();
  });

  test("a request of an unknown machine is shown with the reason, and opens after pairing", async () => {
    const approver = await newApprover("dora");
    const { adas, robots } = await pair(approver);
    let pins = new Pins();
    const built = await submit(robots);
    const heard = listen(approver, () => pins, { transports: ["websocket"] });
    const event = await heard.until("request", isRequest(built.requestId));
    expect(event.type === "request" && event.item.opened instanceof OpenError && event.item.opened.reason).toBe(
      "unknown-sender",
    );
    pins = adas;
    heard.channel.reopen();
    await heard.until(
      "opened request",
      (it) => isRequest(built.requestId)(it) && it.type === "request" && !(it.item.opened instanceof OpenError),
    );
    await heard.stop();
  });

  test("a transport that does not work is left at once, and tried again", async () => {
    const approver = await newApprover("fred");
    const { adas, robots } = await pair(approver);
    let tried = 0;
    class Broken extends WebSocket {
      constructor(_url: string, protocols: string[]) {
        tried += 1;
        super("ws://127.0.0.1:1/", protocols);
      }
    }
    const heard = listen(approver, () => adas, { webSocket: Broken, upAgainMillis: 500 });
    await heard.until("fallback", (event) => event.type === "connected" && event.transport === "sse");
    const built = await submit(robots);
    await heard.until("request", isRequest(built.requestId));
    for (let round = 0; round < 100 && tried < 2; round += 1) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(tried).toBeGreaterThanOrEqual(2);
    await heard.stop();
  });

  test("a gateway that restarts is found again, and nothing is missed", async () => {
    const approver = await newApprover("greta");
    const { adas, robots } = await pair(approver);
    const heard = listen(approver, () => adas, {});
    await heard.until("connection", (event) => event.type === "connected");
    await gateway.stop();
    await heard.until("end of the connection", (event) => event.type === "disconnected");
    await gateway.start();
    machine = new Http({ gateway: gateway.url, credential: gateway.keys.enforcer });
    // The pauses between attempts have grown meanwhile.
    heard.channel.wake();
    const built = await submit(robots);
    await heard.until("request", isRequest(built.requestId));
    await heard.stop();
  });

  test("a credential that is revoked ends the channel", async () => {
    const approver = await newApprover("hans");
    const heard = listen(approver, () => new Pins(), {});
    await heard.until("connection", (event) => event.type === "connected");
    const operator = new Http({ gateway: gateway.url, credential: gateway.keys.operator });
    const keys = (await operator.send({ method: "GET", path: "/platform/v1/keys" })).body;
    const all = (JSON.parse(Buffer.from(keys).toString()) as { keys: { keyId: string; id?: string }[] }).keys;
    await operator.send({ method: "DELETE", path: `/platform/v1/keys/${all.find((key) => key.id === "hans")?.keyId}` });
    const event = await heard.until("refusal", (it) => it.type === "refused");
    expect(event.type === "refused" && event.error.status).toBe(401);
    await heard.stop();
  });

  test("errors say what to do next", async () => {
    const nobody = new Http({ gateway: "http://127.0.0.1:1" });
    await expect(nobody.send({ method: "GET", path: "/readyz" })).rejects.toMatchObject({
      reason: "unreachable",
      isRetryable: true,
    });
    const stranger = new Http({ gateway: gateway.url, credential: "csk_x" });
    const error = await stranger.send({ method: "GET", path: "/v1/status" }).catch((it: unknown) => it);
    expect(error instanceof CallError && [error.status, error.gatewayCode, error.next]).toEqual([
      401,
      "PROTO_ERR_UNAUTHENTICATED",
      expect.stringContaining("Join again"),
    ]);
  });
});
