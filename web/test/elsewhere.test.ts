// An answer on another device: whose it was, and whether that was checked here.

import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { beforeAll, describe, expect, test } from "vitest";

import type { VouchedDevice } from "../src/keys/record.ts";
import { App } from "../src/page/app.ts";
import { type Elsewhere, elsewhere } from "../src/page/elsewhere.ts";
import { type Card, Inbox } from "../src/page/inbox.ts";
import { AppContext } from "../src/page/parts.tsx";
import { AnsweredElsewhere } from "../src/page/screens/card.tsx";
import { parseObject } from "../src/protocol/json.ts";
import { formatBundle } from "../src/protocol/keys.ts";
import { decide } from "../src/protocol/reply.ts";
import type { OpenedRequest } from "../src/protocol/request.ts";
import { Desk, NOW } from "./desk.ts";
import { type Device, newDevice, Random } from "./random.ts";

let desk: Desk;
let app: App;
let card: Card;
let request: OpenedRequest;
let laptop: Device;
let grace: Device;
beforeAll(async () => {
  desk = await Desk.open();
  app = await desk.tab(new App(), {});
  card = await desk.card(app);
  if (card.request === undefined) throw new Error("there is no request");
  const random = new Random(11);
  [laptop, grace] = [await newDevice(random, "ada"), await newDevice(random, "grace")];
  const others = [laptop, grace].map(({ id, keys }) => ({ id, fingerprint: keys.fingerprint }));
  request = { ...card.request, sealedTo: [...card.request.sealedTo, ...others] };
});

const vouched = ({ id, keys }: Device, more: Partial<VouchedDevice> = {}): VouchedDevice => ({
  approverId: id,
  fingerprint: keys.fingerprint,
  short: "",
  until: "",
  ...more,
});

async function answered(by: Device, outcome: "approve" | "reject" = "approve", of = request): Promise<string> {
  const choice = { outcome, scope: "once", validUntil: NOW.plus(600_000), words: {} } as const;
  return (await decide(of, choice, by, NOW)).source;
}

const found = (source: string, known: readonly VouchedDevice[] = []): Elsewhere | undefined =>
  elsewhere(parseObject(source), request, desk.ada, known);

describe("an answer on another device", () => {
  test("is checked with the keys that this device has vouched for", async () => {
    const known = [vouched(laptop, { label: "Ada's laptop", keys: formatBundle(laptop.keys.bundle) })];
    const source = await answered(laptop);
    const expected = { outcome: "approve", approverId: "ada", device: "Ada's laptop", isVerified: true };
    expect(found(source, known)).toEqual(expected);
    // Its name and its keys are known, so the relay can't make up an answer of it.
    expect(found(source.replace('"decision":"approve"', '"decision":"reject"'), known)).toBeUndefined();
  });

  test("is the relay's word where its keys are not known here", async () => {
    const source = await answered(grace, "reject");
    const expected = { outcome: "reject", approverId: "grace", device: "", isVerified: false };
    expect(found(source)).toEqual(expected);
    const [known] = [vouched(grace, { label: "Grace's phone" })];
    expect(found(source, [known])).toEqual({ ...expected, device: "Grace's phone" });
  });

  test("of this device counts only with its signature", async () => {
    const source = await answered(desk.ada);
    expect(found(source)).toMatchObject({ approverId: "ada", isVerified: true });
    expect(found(source.replace('"decision":"approve"', '"decision":"reject"'))).toBeUndefined();
  });

  test("is nobody's if it is about something else, or nothing names its device", async () => {
    const stranger = await newDevice(new Random(12), "mallory");
    expect(found(await answered(stranger))).toBeUndefined();
    expect(found(await answered(grace, "approve", { ...request, requestId: "other" }))).toBeUndefined();
    expect(found(await answered(grace, "approve", { ...request, artifactHash: "0".repeat(64) }))).toBeUndefined();
    expect(found("{}")).toBeUndefined();
    expect(elsewhere(undefined, request, desk.ada, [])).toBeUndefined();
  });
});

describe("what is said of it", () => {
  const said = (by: Elsewhere, wasHeard: boolean): string => {
    const inbox = new Inbox([card]).end(card.requestId, "answered", Date.now() - 3_400, wasHeard);
    const ended = inbox.answeredBy(card.requestId, by).get(card.requestId);
    if (ended === undefined) throw new Error("there is no card");
    const screen = h(AppContext.Provider, { value: app, children: h(AnsweredElsewhere, { card: ended }) });
    return renderToString(screen).replace(/<[^>]*>/g, "");
  };
  const own = { outcome: "approve", approverId: "ada", device: "Ada's laptop", isVerified: true } as const;
  const other = { outcome: "reject", approverId: "grace", device: "", isVerified: false } as const;

  test.each<[string, Elsewhere, boolean, string]>([
    ["one's own", own, true, "You approved this on Ada's laptop, 3 s ago. Signature checked here."],
    ["one without a name", { ...own, device: "" }, true, "You approved this on another device, 3 s ago. "],
    ["somebody else's", other, true, "grace rejected this, 3 s ago. Says the relay; not checked here."],
    ["one at an unknown time", other, false, "grace rejected this. Says the relay; not checked here."],
  ])("%s", (_, by, wasHeard, text) => {
    expect(said(by, wasHeard)).toContain(text);
  });

  test("only a card that was answered elsewhere has it", () => {
    const withdrawn = new Inbox([card]).end(card.requestId, "withdrawn", 0);
    expect(withdrawn.answeredBy(card.requestId, own)).toBe(withdrawn);
  });
});
