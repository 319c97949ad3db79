// The prompts of this device: none is lost, none is said to be refused that may have arrived, and what is final stays.

import { IDBFactory } from "fake-indexeddb";
import { beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

import { MAX_PROMPTS, Prompts } from "../src/page/prompts.ts";
import { Store } from "../src/page/store.ts";
import { Approver } from "../src/protocol/approver.ts";
import { ApproverChannel } from "../src/protocol/channel.ts";
import { CallError, Http } from "../src/protocol/http.ts";
import { Pins } from "../src/protocol/pins.ts";
import type { BuiltPrompt, PromptStatus } from "../src/protocol/prompt.ts";
import type { WebSocketClass } from "../src/protocol/transport.ts";
import { Desk, NOW, soon } from "./desk.ts";

const built = (requestId: string): BuiltPrompt => ({ requestId, promptHash: "h", envelope: `{"of":"${requestId}"}` });
const record = { enforcerId: "robot", text: "go on", sentAt: `${NOW}`, expiresAt: `${NOW.plus(3_600_000)}` };
const lost = new CallError("unreachable", "connection lost");
const quota = new CallError("refused", "quota", { status: 403, code: "X", retryable: false, retryAfter: undefined });
const busy = new CallError("refused", "busy", { status: 503, code: "", retryable: true, retryAfter: undefined });

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
});
beforeEach(() => {
  desk.now = NOW;
});

/** A tab whose gateway answers a prompt as `answer` does. */
async function tab(answer: (prompt: BuiltPrompt) => Promise<PromptStatus>, factory = new IDBFactory()) {
  const sendPrompt = vi.fn(answer);
  const store = await desk.tab(new Store(), { sendPrompt }, factory);
  const statuses = () => store.state.prompts.map(({ requestId, status }) => [requestId, status]);
  return { store, prompts: new Prompts(store), sendPrompt, statuses };
}

describe("a prompt", () => {
  test("may be delivered before the gateway's answer, or without one", async () => {
    const { prompts, statuses } = await tab(async ({ requestId }) => {
      if (requestId === "slow") expect(statuses()).toEqual([["slow", "sending"]]);
      else await prompts.acknowledged(requestId, "delivered");
      if (requestId === "cut") throw lost;
      return "queued";
    });
    await prompts.send(record, built("slow"));
    await prompts.send(record, built("fast"));
    await prompts.send(record, built("cut"));
    expect(statuses()).toEqual([
      ["cut", "delivered"],
      ["fast", "delivered"],
      ["slow", "queued"],
    ]);
  });

  test("that was refused for good is not kept; one that may have arrived is, and the error is shown", async () => {
    const { prompts, statuses } = await tab(async ({ requestId }) => {
      throw requestId === "quota" ? quota : requestId === "busy" ? busy : lost;
    });
    await expect(prompts.send(record, built("quota"))).rejects.toBe(quota);
    await expect(prompts.send(record, built("busy"))).rejects.toBe(busy);
    await expect(prompts.send(record, built("lost"))).rejects.toBe(lost);
    expect(statuses()).toEqual([
      ["lost", "sending"],
      ["busy", "sending"],
    ]);
  });

  test("that waits is sent again as it was, until something final is known of it or its time is over", async () => {
    const answers: Record<string, PromptStatus | CallError> = { a: lost, b: "queued", c: "queued" };
    const factory = new IDBFactory();
    const answer = async ({ requestId }: BuiltPrompt): Promise<PromptStatus> => {
      const said = answers[requestId] ?? "delivered";
      if (typeof said !== "string") throw said;
      return said;
    };
    const first = await tab(answer, factory);
    for (const id of ["a", "b", "c"]) await first.prompts.send(record, built(id)).catch(() => undefined);
    // Also after the page was opened again.
    const { store, prompts, sendPrompt, statuses } = await tab(answer, factory);
    await prompts.load();
    Object.assign(answers, { a: "queued", b: "delivered", c: quota });
    await prompts.sendAgain();
    expect(sendPrompt.mock.calls.map(([prompt]) => prompt)).toEqual([built("c"), built("b"), built("a")]);
    expect(statuses()).toEqual([
      ["c", "error"],
      ["b", "delivered"],
      ["a", "queued"],
    ]);
    expect(store.state.prompts.map((kept) => kept.built?.requestId)).toEqual([undefined, undefined, "a"]);
    await prompts.sendAgain();
    expect(sendPrompt).toHaveBeenCalledTimes(4);
    desk.now = NOW.plus(3_600_000);
    await prompts.sendAgain();
    expect(sendPrompt).toHaveBeenCalledTimes(4);
  });

  test("that is delivered stays so, whatever an older answer says", async () => {
    const { prompts, statuses } = await tab(async () => "queued");
    await prompts.send(record, built("a"));
    await prompts.acknowledged("a", "delivered");
    await prompts.acknowledged("a", "queued");
    expect(statuses()).toEqual([["a", "delivered"]]);
  });
});

test("the last fifty prompts are kept, also when the page is opened again", async () => {
  const factory = new IDBFactory();
  const { prompts } = await tab(async () => "queued", factory);
  for (let at = 0; at < MAX_PROMPTS + 3; at += 1) await prompts.send(record, built(`${at}`));
  await prompts.acknowledged("52", "delivered");
  await prompts.acknowledged("unknown", "delivered");
  const again = await tab(async () => "queued", factory);
  await again.prompts.load();
  const kept = again.store.state.prompts;
  expect(kept).toHaveLength(MAX_PROMPTS);
  expect([kept[0], kept.at(-1)]).toMatchObject([
    { requestId: "52", status: "delivered" },
    { requestId: "3", status: "queued" },
  ]);
});

test("the word on a prompt is acknowledged to the gateway after it was kept", async () => {
  const sent: string[] = [];
  let push = (_message: object): void => undefined;
  class Socket {
    readyState = 1;
    onopen = (): void => undefined;
    onclose = (_: object): void => undefined;
    onmessage = (_: object): void => undefined;
    constructor() {
      push = (message) => this.onmessage({ data: JSON.stringify(message) });
      setTimeout(() => this.onopen());
    }
    send = (text: string): void => void sent.push(text);
    close = (): void => this.onclose({ code: 1000, reason: "" });
  }
  const approver = Object.assign(new Approver(new Http({ gateway: "https://gw.example" }), "ada", desk.ada.keys), {
    ticket: async () => "t",
    list: async () => ({ envelopes: [], isComplete: true }),
  });
  const heard: string[] = [];
  let keep = (): void => undefined;
  const channel = new ApproverChannel(
    approver,
    () => new Pins(),
    (event) => {
      heard.push(event.type);
      return event.type === "prompt-ack" ? new Promise<void>((resolve) => (keep = resolve)) : undefined;
    },
    { webSocket: Socket as unknown as WebSocketClass },
  );
  const running = channel.run();
  await soon(() => expect(heard).toContain("connected"));
  const body = { requestId: "p", promptHash: "0".repeat(64), status: "delivered", ackAt: `${NOW}` };
  push({ msgType: "prompt.ack", msgId: "m1", requestId: "p", createdAt: `${NOW}`, sender: {}, body });
  await soon(() => expect(heard).toContain("prompt-ack"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const acknowledged = () => sent.some((text) => text.includes('"ack.submit"') && text.includes('"m1"'));
  expect(acknowledged()).toBe(false);
  keep();
  await soon(() => expect(acknowledged()).toBe(true));
  channel.stop();
  await running;
});
