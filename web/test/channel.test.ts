// What a channel does at a gateway that has tickets or has none, that pings or does not, and that says how requests end.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { Approver } from "../src/protocol/approver.ts";
import { ApproverChannel, type ChannelEvent } from "../src/protocol/channel.ts";
import { Http } from "../src/protocol/http.ts";
import { newPin, Pins } from "../src/protocol/pins.ts";
import { Desk, NOW, soon } from "./desk.ts";
import { FakeSocket, FakeStream, fakeSockets, Hand, rest } from "./network.ts";

let desk: Desk;
let clock: Hand;
/** The statuses of the ticket and of the stream; 200 if there is one. */
let [tickets, streams] = [200, 200];
let calls: { path: string; headers: Record<string, string>; body: string }[] = [];
let opened: FakeStream[] = [];
let listed: string[] = [];
let running: { channel: ApproverChannel; ended: Promise<void> }[] = [];

beforeAll(async () => {
  desk = await Desk.open();
});
beforeEach(() => {
  clock = new Hand();
  [tickets, streams] = [200, 200];
  [calls, opened, listed, running] = [[], [], [], []];
  FakeSocket.all.length = 0;
});
afterEach(async () => {
  for (const { channel, ended } of running) {
    channel.stop();
    await clock.pass(60_000);
    await ended;
  }
});

const json = (status: number, value: object): Response => new Response(JSON.stringify(value), { status });

/** A gateway as a browser sees it. What it does not know is 404, in words of its own. */
const gateway = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
  const path = `${url}`.replace(/^https:\/\/[^/]*/, "").replace(/\?.*/, "");
  calls.push({ path, headers: { ...(init?.headers as Record<string, string>) }, body: `${init?.body ?? ""}` });
  if (path === "/platform/v1/tickets")
    return tickets === 200 ? json(200, { ticket: "t", expiresAt: `${NOW}` }) : json(tickets, { error: "no route" });
  if (path.startsWith("/v1/sse/")) {
    if (streams !== 200) return json(streams, { error: "no route" });
    const stream = new FakeStream();
    opened.push(stream);
    return stream.response(init?.signal);
  }
  if (path.endsWith("/inbox")) {
    const items = listed.map((text) => JSON.parse(text) as unknown);
    return json(200, envelope("inbox.page", "page", { items, nextCursor: null }));
  }
  return path === "/v1/acks" ? json(200, envelope("ack.accepted", "x", {})) : json(404, {});
};

const envelope = (msgType: string, requestId: string, body: object, msgId?: string): object => ({
  ...(msgId === undefined ? {} : { msgId }),
  msgType,
  requestId,
  createdAt: `${NOW}`,
  sender: { gatewayId: "other" },
  body,
});

/** Connects; what is heard is added to the list that is returned. */
function connect(): ChannelEvent[] {
  const events: ChannelEvent[] = [];
  const http = new Http({ gateway: "https://gw.example", credential: "csk_ada", clock, fetch: gateway });
  const approver = new Approver(http, "ada", desk.ada.keys);
  const pins = new Pins().add(newPin({ role: "enforcer", id: "robot" }, desk.robot.keys.bundle, NOW));
  const channel = new ApproverChannel(
    approver,
    () => pins,
    (event) => void events.push(event),
    { webSocket: fakeSockets },
  );
  running.push({ channel, ended: channel.run() });
  return events;
}

const types = (events: readonly ChannelEvent[]): string[] =>
  events.map((event) => (event.type === "connected" ? `connected ${event.transport}` : event.type));
const count = (path: string): number => calls.filter((call) => call.path === path).length;
const TICKETS = "/platform/v1/tickets";

describe("how a request has ended elsewhere", () => {
  /** Shows a request over a WebSocket, and pushes this about it. */
  async function pushed(...messages: ((requestId: string) => object)[]) {
    const request = await desk.requestText();
    const events = connect();
    await rest();
    const [socket] = FakeSocket.all;
    if (socket === undefined) throw new Error("there is no WebSocket");
    socket.push(request.text);
    await soon(() => expect(socket.sent.at(-1)).toContain("ack.submit"));
    const acknowledged = socket.sent.length;
    for (const message of messages) socket.push(JSON.stringify(message(request.requestId)));
    await rest();
    return { ...request, events, socket, answers: socket.sent.slice(acknowledged) };
  }
  const status =
    (state: unknown, more: object = {}) =>
    (requestId: string) =>
      envelope(
        "exchange.status",
        requestId,
        { requestId, state, createdAt: `${NOW}`, expiresAt: `${NOW}`, ...more },
        "s",
      );

  test("is asked for when the connection begins", async () => {
    const { socket } = await pushed();
    expect(JSON.parse(socket.sent[0] ?? "")).toEqual({
      msgType: "hello",
      capabilities: { push: true, sse: true, poll: true, "org.countersign.status": true },
    });
  });

  test.each(["decided", "delivered", "expired", "withdrawn", "cancelled"])(
    "is reported once, and not acknowledged: %s",
    async (state) => {
      const decision = { decision: "approve", requestId: "made up" };
      const { events, requestId, answers } = await pushed(status(state, { decision }), status(state));
      expect(events.slice(2)).toEqual([{ type: "gone", requestId, end: state }]);
      expect(answers).toEqual([]);
    },
  );

  test.each([
    ["it still waits", status("pendingApproval")],
    ["a state that nobody knows", status("approved")],
    ["no state", status(undefined)],
    ["a body about another request", status("decided", { requestId: "another" })],
    ["a request that was never shown", () => status("decided")("another")],
  ])("is nothing, and the connection goes on: %s", async (_, message) => {
    const { events, socket } = await pushed(message);
    expect(types(events)).toEqual(["connected websocket", "request"]);
    expect(socket.readyState).toBe(1);
  });
});

describe("a gateway without tickets", () => {
  test.each([404, 405, 403, 501])(
    "is listened to over a stream at once, with the credential in a header (%s)",
    async (status) => {
      tickets = status;
      const events = connect();
      await rest();
      expect(types(events)).toEqual(["connected sse"]);
      expect(FakeSocket.all).toEqual([]);
      const stream = calls.find(({ path }) => path === "/v1/sse/approvers/ada");
      expect(stream?.headers).toMatchObject({ Authorization: "Bearer csk_ada", Accept: "text/event-stream" });
      const { text, requestId } = await desk.requestText();
      opened[0]?.event("approval.request", text, "7");
      await soon(() => expect(events[1]).toMatchObject({ type: "request", item: { requestId } }));
      // Its acknowledgement goes over HTTP.
      expect(JSON.parse(calls.find(({ path }) => path === "/v1/acks")?.body ?? "")).toMatchObject({ requestId });
    },
  );

  test("is not asked for one every minute, and nobody is told of a break when it is asked again", async () => {
    tickets = 404;
    const events = connect();
    await clock.pass(15 * 60_000);
    expect([count(TICKETS), opened.length]).toEqual([1, 1]);
    await clock.pass(2 * 60_000);
    expect([count(TICKETS), opened.length, opened[0]?.isEnded]).toEqual([2, 2, true]);
    tickets = 200;
    await clock.pass(17 * 60_000);
    expect(types(events)).toEqual(["connected sse", "connected sse", "connected websocket"]);
  });

  test("is read from time to time, since a stream does not say how requests end", async () => {
    tickets = 404;
    const { text, requestId } = await desk.requestText();
    listed = [text];
    const events = connect();
    await soon(() => expect(types(events)).toEqual(["connected sse", "request"]));
    listed = [];
    await clock.pass(15_000);
    expect(events.slice(2)).toEqual([{ type: "gone", requestId, end: undefined }]);
  });

  test("is connected to again less and less often when its stream ends at once, from the last position on", async () => {
    tickets = 404;
    const events = connect();
    await rest();
    const { text } = await desk.requestText();
    opened[0]?.event("approval.request", text, "7");
    await soon(() => expect(types(events)).toEqual(["connected sse", "request"]));
    const pauses: number[] = [];
    for (let round = 1; round <= 6; round += 1) {
      opened.at(-1)?.end();
      let pause = 0;
      for (; opened.length === round; pause += 500) await clock.pass(500);
      pauses.push(pause);
    }
    for (const [at, pause] of pauses.entries()) {
      const most = Math.min(30_000, 1_000 * 2 ** at);
      expect(pause, `pause ${at}`).toBeGreaterThanOrEqual(most / 2);
      expect(pause, `pause ${at}`).toBeLessThanOrEqual(most + 500);
    }
    expect(types(events).slice(0, 4)).toEqual(["connected sse", "request", "disconnected", "connected sse"]);
    const streams = calls.filter(({ path }) => path.startsWith("/v1/sse/"));
    expect(streams.map(({ headers }) => headers["Last-Event-ID"])).toEqual([undefined, ...Array(6).fill("7")]);
    // Whatever happens to streams, there are no tickets.
    expect(count(TICKETS)).toBe(1);
  });

  test("and without streams is asked again and again, and the stream is tried again", async () => {
    [tickets, streams] = [404, 404];
    const events = connect();
    await clock.pass(10_000);
    expect(types(events)).toEqual(["disconnected", "connected poll"]);
    const before = count("/v1/approvers/ada/inbox");
    await clock.pass(9_000);
    expect(count("/v1/approvers/ada/inbox") - before).toBe(3);
    streams = 200;
    await clock.pass(60_000);
    expect(types(events).at(-1)).toBe("connected sse");
    expect(count(TICKETS)).toBe(1);
  });

  test("that refuses the credential ends the channel", async () => {
    tickets = 403;
    const restore = gatewayRefuses();
    const events = connect();
    await soon(() => expect(types(events)).toEqual(["refused"]));
    restore();
  });
});

/** From now on streams are refused in the words of a gateway that does not know the credential. */
function gatewayRefuses(): () => void {
  const original = FakeStream.prototype.response;
  FakeStream.prototype.response = () =>
    json(401, envelope("error", "x", { code: "PROTO_ERR_UNAUTHENTICATED", message: "", retryable: false }));
  return () => {
    FakeStream.prototype.response = original;
  };
}

describe("a stream", () => {
  beforeEach(() => {
    tickets = 404;
  });

  test("that never pings stays open, however long it is silent", async () => {
    const events = connect();
    await rest();
    opened[0]?.write(": hello\n\n");
    await clock.pass(14 * 60_000);
    expect(types(events)).toEqual(["connected sse"]);
  });

  test.each([
    ["by events", "event: ping\ndata:\n\n"],
    ["by events that have data", 'event: ping\ndata: {"at":"now"}\n\n'],
    ["by comments", ": keep-alive\n\n"],
  ])("that has pinged %s and falls silent is given up", async (_, ping) => {
    const events = connect();
    for (let round = 0; round < 8; round += 1) {
      await clock.pass(15_000);
      opened[0]?.write(ping);
    }
    await clock.pass(44_000);
    expect(types(events)).toEqual(["connected sse"]);
    await clock.pass(5_000);
    expect(types(events)).toEqual(["connected sse", "disconnected", "connected sse"]);
  });

  test("that pings each minute is not given up in between", async () => {
    const events = connect();
    for (let round = 0; round < 8; round += 1) {
      await clock.pass(60_000);
      opened[0]?.write("event: ping\ndata:\n\n");
    }
    expect(types(events)).toEqual(["connected sse"]);
  });

  test("whose messages have other ids than a listing is not taken for deaf", async () => {
    const events = connect();
    await clock.pass(25_000);
    const { text, requestId } = await desk.requestText();
    opened[0]?.event("approval.request", text);
    await soon(() => expect(types(events)).toContain("request"));
    listed = [text.replace(/"msgId":"[^"]*"/, '"msgId":"of the listing"')];
    await clock.pass(60_000);
    expect(types(events).filter((type) => type !== "request")).toEqual(["connected sse"]);
    expect(events.filter((event) => event.type === "request" && event.item.requestId !== requestId)).toEqual([]);
  });

  test("that something between holds back is left for asking again and again", async () => {
    const original = FakeStream.prototype.response;
    FakeStream.prototype.response = (signal) =>
      new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("given up")))) as never;
    const events = connect();
    await clock.pass(20_000);
    FakeStream.prototype.response = original;
    expect(types(events)).toEqual(["disconnected", "connected poll"]);
  });
});
