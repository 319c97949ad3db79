// A page without a screen: a store with a device that has joined, a machine that it trusts, and a gateway that a test plays.

import { IDBFactory } from "fake-indexeddb";
import { vi } from "vitest";

import { Database } from "../src/keys/database.ts";
import { keepProfile, prepareKeys } from "../src/keys/profile.ts";
import { type Card, newCard } from "../src/page/inbox.ts";
import type { SentRecord } from "../src/page/sent.ts";
import type { Store } from "../src/page/store.ts";
import { changePins } from "../src/page/trust.ts";
import { Approver, type ExchangeStatus } from "../src/protocol/approver.ts";
import { type Envelope, parseEnvelope } from "../src/protocol/envelope.ts";
import { Http } from "../src/protocol/http.ts";
import { parseObject } from "../src/protocol/json.ts";
import { newPin, Pins } from "../src/protocol/pins.ts";
import { decide } from "../src/protocol/reply.ts";
import { buildRequest, type RequestDraft } from "../src/protocol/request.ts";
import { Timestamp } from "../src/protocol/timestamp.ts";
import { type Device, newDevice, Random } from "./random.ts";

export const NOW = Timestamp.ofMillis(Date.UTC(2026, 10, 16, 12));
const JOINED = { gateway: "https://gw.example", tenant: "acme", id: "ada", credential: "csk_x", joinedAt: "" };

/** The desk of Ada. What the gateway is asked, `gateway` answers. */
export class Desk {
  readonly robot: Device;
  readonly ada: Device;
  /** The time, which passes only when somebody sleeps. */
  now = NOW;

  private constructor(robot: Device, ada: Device) {
    [this.robot, this.ada] = [robot, ada];
  }

  static async open(): Promise<Desk> {
    const random = new Random(7);
    return new Desk(await newDevice(random, "robot"), await newDevice(random, "ada"));
  }

  /** A tab of Ada's browser: the page `store`, at a gateway that answers as `gateway` does. */
  async tab<S extends Store>(store: S, gateway: Partial<Approver>, factory = new IDBFactory()): Promise<S> {
    const clock = {
      now: () => this.now,
      sleep: async (millis: number) => {
        this.now = this.now.plus(millis);
        await new Promise((resolve) => setTimeout(resolve));
      },
    };
    // A call that a test does not answer is refused.
    const fetch = async () => new Response("", { status: 404 });
    const http = new Http({ gateway: JOINED.gateway, clock, fetch });
    store.database = await Database.open(factory);
    store.approver = Object.assign(new Approver(http, "ada", this.ada.keys), gateway);
    await prepareKeys(store.database);
    const none = { getItem: () => null, setItem: () => undefined, removeItem: () => undefined };
    await keepProfile(store.database, JOINED, none);
    const pin = newPin({ role: "enforcer", id: "robot" }, this.robot.keys.bundle, NOW);
    await changePins(store, (pins) => pins.add(pin));
    return store;
  }

  /** A request of the machine, as a card. */
  async card(store: Store, more: Partial<RequestDraft> = {}, machine = this.robot): Promise<Card> {
    return newCard(await store.approver.open(await this.request(more, machine), store.state.pins));
  }

  /** A request of the machine, as the gateway passes it on. */
  async request(more: Partial<RequestDraft> = {}, machine = this.robot): Promise<Envelope> {
    return parseEnvelope((await this.requestText(more, machine)).text);
  }

  /** The same as the text of a message. */
  async requestText(
    more: Partial<RequestDraft> = {},
    machine = this.robot,
  ): Promise<{ readonly requestId: string; readonly text: string }> {
    const payload = JSON.stringify({ schema: "org.proto.payload", version: 1, argv: ["ls"], cwd: "/", effects: [] });
    const draft = {
      artifactType: "command.review",
      payload,
      repoRef: "r",
      repoName: "n",
      expiresAt: NOW.plus(7_200_000),
      ...more,
    };
    const approvers = new Pins().add(newPin({ role: "approver", id: "ada" }, this.ada.keys.bundle, NOW));
    const { envelope, requestId } = await buildRequest(
      { ...draft, artifactType: "command.review" },
      machine,
      approvers,
      NOW,
    );
    const text = envelope.replace('"msgType":"artifact.submit"', `"msgId":"${requestId}","msgType":"approval.request"`);
    return { requestId, text };
  }

  /** The record of a signed answer about a card. */
  async record(card: Card, outcome: "approve" | "reject" = "approve"): Promise<SentRecord> {
    if (card.request === undefined) throw new Error("the card has no request");
    const choice = { outcome, scope: "once", validUntil: NOW.plus(600_000), words: {} } as const;
    const { requestId, enforcerId, source } = await decide(card.request, choice, this.ada, NOW);
    return {
      requestId,
      enforcerId,
      source,
      headline: card.headline,
      outcome,
      scope: "once",
      reason: undefined,
      action: undefined,
      shown: undefined,
      expiresAt: `${card.request.expiresAt}`,
      signedAt: `${NOW}`,
    };
  }
}

/** The gateway's word on an exchange. */
export function status(requestId: string, state: ExchangeStatus["state"], decision?: string): ExchangeStatus {
  const whole = decision === undefined ? undefined : parseObject(decision);
  return { requestId, state, createdAt: NOW, expiresAt: NOW.plus(7_200_000), decision: whole };
}

/** Waits until a check passes, also on a busy machine. */
export function soon<T>(check: () => T): Promise<T> {
  return vi.waitFor(check, { timeout: 20_000 });
}
