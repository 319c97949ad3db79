// The end beside a person: joins, pairs with enforcers, lists what waits, opens and checks it, and signs decisions.

import { type Asked, ownBundle } from "./bundle.ts";
import { readDecision, verifyDecisionSignature } from "./decision.ts";
import type { DeviceKeys } from "./device.ts";
import { type Envelope, readEnvelope, writeEnvelope } from "./envelope.ts";
import { CountersignError, FormatError } from "./errors.ts";
import { historySession, openHistory, type RememberedAnswer } from "./history.ts";
import { type Call, CallError, type Http, segment, understood } from "./http.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import { formatBundle, type KeyBundle, parseBundle } from "./keys.ts";
import type { PairingLink } from "./link.ts";
import { formatLock, LOCK_EXTENSION, type LockKey } from "./lock.ts";
import { id, list, Members, object, sha256, text, time, word } from "./members.ts";
import { answerLink, answerTyped, type PairingAnswer, PairingError, type Transcript } from "./pairing.ts";
import { newPin, type Pin, type Pins } from "./pins.ts";
import { type BuiltPrompt, buildPrompt, PROMPT_STATUSES, type PromptDraft, type PromptStatus } from "./prompt.ts";
import { openReceipt, type Receipt, ReceiptError, receiptSession } from "./receipt.ts";
import { type Choice, decide, type SentDecision, sentDecision } from "./reply.ts";
import { type Identity, OpenError, type OpenedRequest, openRequest } from "./request.ts";
import { SealError } from "./seal.ts";
import { openSnapshot } from "./session.ts";
import type { Statement } from "./statement.ts";
import type { Timestamp } from "./timestamp.ts";

/** Pages of a list that are read, of 200 items each: a gateway could always name another one. */
export const MAX_PAGES = 20;

/** One item of the inbox: opened and checked, or the reason why it can't be decided here. */
export interface InboxItem {
  readonly requestId: string;
  readonly opened: OpenedRequest | OpenError;
  /** Identifies the message, for acknowledging it. */
  readonly msgId: string | undefined;
}

/** Where an exchange stands, by the gateway's word. */
export const EXCHANGE_STATES = [
  "pendingApproval",
  "decided",
  "delivered",
  "expired",
  "withdrawn",
  "cancelled",
] as const;

/** How an exchange has ended. */
export type ExchangeEnd = Exclude<(typeof EXCHANGE_STATES)[number], "pendingApproval">;

/** The status of an exchange. Show it as the gateway's word, and decide nothing by it. */
export interface ExchangeStatus {
  readonly requestId: string;
  readonly state: (typeof EXCHANGE_STATES)[number];
  readonly createdAt: Timestamp;
  readonly expiresAt: Timestamp;
  /** The decision as it was submitted, which nobody has checked. */
  readonly decision: JsonObject | undefined;
}

/** A pairing that was answered. The pin must not be kept before a person has compared the digits, if there are any. */
export interface Paired {
  readonly pin: Pin;
  /** Thirty digits to compare with the machine; `undefined` if the link has proven everything. */
  readonly digits: string | undefined;
  readonly enforcerLabel: string;
  readonly workspaceName: string;
}

/** A pair as the gateway lists it. */
export interface PairEntry {
  readonly pairId: string;
  readonly enforcerId: string;
  readonly approverId: string;
  readonly enforcerLabel: string | undefined;
  readonly workspaceName: string | undefined;
  /** The Ed25519 key that the pair registered, in base64url. */
  readonly signingKey: string | undefined;
  readonly createdAt: Timestamp | undefined;
  readonly vouchedUntil: Timestamp | undefined;
}

/** A session as the gateway has it: apart from what snapshots prove, it is the gateway's word. */
export interface Session {
  readonly sessionId: string;
  readonly enforcerId: string;
  readonly agentHost: string | undefined;
  readonly state: string | undefined;
  readonly updatedAt: Timestamp | undefined;
  readonly endedAt: Timestamp | undefined;
  /** The newest snapshot event of each type, to be opened with `openSnapshot`. */
  readonly snapshots: ReadonlyMap<string, JsonObject>;
}

/** One device of an approver at one gateway. */
export class Approver {
  readonly http: Http;
  readonly identity: Identity;

  constructor(http: Http, approverId: string, keys: DeviceKeys) {
    this.http = http;
    this.identity = { id: approverId, keys };
  }

  get #now(): Timestamp {
    return this.http.clock.now();
  }

  /** Opens and checks a request; what can't be opened is an item too, with the reason. */
  async open(envelope: Envelope, pins: Pins): Promise<InboxItem> {
    const { requestId, msgId } = envelope;
    try {
      return { requestId, msgId, opened: await openRequest(envelope, this.identity, pins, this.#now) };
    } catch (error) {
      if (error instanceof OpenError) return { requestId, msgId, opened: error };
      throw error;
    }
  }

  /** The `approval.request` envelopes that wait, oldest first; `isComplete` unless there are more pages than are read. */
  async list(which: "pending" | "expired" = "pending"): Promise<{ envelopes: Envelope[]; isComplete: boolean }> {
    const base = `/v1/approvers/${segment(this.identity.id)}/inbox${which === "expired" ? "/expired" : ""}?limit=200`;
    const readPage = ({ body }: Envelope) => {
      const members = new Members(body);
      const nextCursor = members.required("nextCursor", (value, at) => (value === null ? undefined : text(value, at)));
      return { items: members.required("items", list(readEnvelope)), nextCursor };
    };
    const [envelopes, isComplete] = await this.#pages(base, async (path) => {
      const answer = await this.http.sendUntil({ method: "GET", path });
      return understood(() => readPage(answer.envelope()));
    });
    return { envelopes, isComplete };
  }

  async #pages<T>(
    base: string,
    read: (path: string) => Promise<{ items: T[]; nextCursor: string | undefined }>,
  ): Promise<[T[], boolean]> {
    const all: T[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const { items, nextCursor } = await read(cursor === undefined ? base : `${base}&cursor=${segment(cursor)}`);
      all.push(...items);
      if (nextCursor === undefined) return [all, true];
      cursor = nextCursor;
    }
    return [all, false];
  }

  /** What waits for this person, opened and checked. */
  async inbox(pins: Pins): Promise<InboxItem[]> {
    const { envelopes } = await this.list();
    return Promise.all(envelopes.map((envelope) => this.open(envelope, pins)));
  }

  /** Hides a request from this person's inbox. It may still be decided. */
  async hide(requestId: string): Promise<void> {
    const path = `/v1/approvers/${segment(this.identity.id)}/inbox/${segment(requestId)}`;
    await this.http.sendUntil({ method: "DELETE", path });
  }

  /** Where an exchange stands, by the gateway's word. */
  async status(requestId: string): Promise<ExchangeStatus> {
    const answer = await this.http.sendUntil({ method: "GET", path: `/v1/exchanges/${segment(requestId)}` });
    return understood(() => {
      const members = new Members(answer.envelope().body);
      const status = {
        requestId: members.required("requestId", id),
        state: members.required("state", word(EXCHANGE_STATES)),
        createdAt: members.required("createdAt", time),
        expiresAt: members.required("expiresAt", time),
        decision: members.optional("decision", object),
      };
      if (status.requestId !== requestId) throw new FormatError("requestId", "is another one");
      return status;
    });
  }

  /** Signs a decision and sends it. What is returned names it, so that its receipt can be recognised. */
  async decide(request: OpenedRequest, choice: Choice): Promise<SentDecision> {
    const sent = await decide(request, choice, this.identity, this.#now);
    await this.sendDecision(sent);
    return sent;
  }

  /** Sends a decision that was signed. Sending the same again is harmless; a second one is refused. */
  async sendDecision(sent: SentDecision): Promise<void> {
    await this.#post("/v1/decisions", "decision.submit", sent.requestId, sent.source);
  }

  /** Acknowledges a message: `received` when this device has it, `seen` when it is shown. */
  async acknowledge(
    requestId: string,
    msgId: string | undefined,
    status: "received" | "seen" | "processed",
  ): Promise<void> {
    const body = JSON.stringify({ msgId, status, ackAt: this.#now });
    await this.#post("/v1/acks", "ack.submit", requestId, body);
  }

  /** Asks the enforcer of an exchange to submit it again. The reason is not sealed: the gateway can read it. */
  async refresh(requestId: string, reason?: string): Promise<void> {
    await this.#post(
      `/v1/exchanges/${segment(requestId)}/refresh`,
      "refresh.request",
      requestId,
      JSON.stringify({ reason }),
    );
  }

  async #post(path: string, msgType: string, requestId: string, body: string): Promise<void> {
    const sender = { approverId: this.identity.id };
    const envelope = writeEnvelope({ msgType, requestId, createdAt: this.#now, sender }, body);
    await this.http.sendUntil({ method: "POST", path, body: envelope });
  }

  /** Answers a link that was scanned or opened. The machine's screen shows what this device is called; the gateway reads it. */
  pairByLink(link: PairingLink, device = "", lock?: LockKey): Promise<Paired> {
    return this.#pair(link.code, (transcript) => answerLink(transcript, link), lock, link.enforcerId, device);
  }

  /**
   * Answers a typed code. The pin must not be used before a person has compared the digits. Throws a {@link PairingError} with
   * `unnamed` where the gateway does not say whose machine it is.
   */
  pairByCode(code: string, lock?: LockKey): Promise<Paired> {
    return this.#pair(code, answerTyped, lock);
  }

  /** `linkedId` is the machine that a link names. */
  async #pair(
    code: string,
    answer: (transcript: Transcript) => PairingAnswer,
    lock?: LockKey,
    linkedId?: string,
    device = "",
  ): Promise<Paired> {
    const resolved = (await this.http.send({ method: "GET", path: `/v1/pairing/resolve/${segment(code)}` })).read(
      (members) => ({
        nonce: members.required("nonce", id),
        enforcerId: members.optional("enforcerId", id),
        enforcerLabel: members.optional("enforcerLabel", text) ?? "",
        workspaceName: members.optional("workspaceName", text) ?? "",
        publicKey: members.required("publicKey", text),
      }),
    );
    const { nonce, enforcerLabel, workspaceName } = resolved;
    const enforcerId = resolved.enforcerId ?? linkedId;
    if (enforcerId === undefined) throw new PairingError("unnamed");
    const enforcer = keysOrStop(resolved.publicKey);
    const { id: approverId, keys } = this.identity;
    const { bundle, digits } = answer({ enforcerId, enforcer, approverId, approver: keys.bundle, nonce, lock });
    // What is proven is proven of the lock too, so it is not left out for any gateway.
    const relayed = lock === undefined ? {} : { [LOCK_EXTENSION]: formatLock(lock) };
    const plain = { nonce, approverId, publicKey: formatBundle(bundle), ...relayed };
    const complete = (body: object) =>
      this.http.send({ method: "POST", path: "/v1/pairing/complete", body: JSON.stringify(body) });
    const named = device === "" ? plain : { ...plain, "org.countersign.deviceLabel": device };
    await complete(named).catch((error: unknown) => {
      // Another gateway may take no member that the specification does not have.
      const isOther = error instanceof CallError && (error.status === 400 || error.status === 422);
      if (isOther && named !== plain) return complete(plain);
      throw error;
    });
    const pin = newPin({ role: "enforcer", id: enforcerId }, enforcer, this.#now);
    return { pin, digits, enforcerLabel, workspaceName };
  }

  /** The pairs of this person, by the gateway's word. */
  async pairs(): Promise<PairEntry[]> {
    const [pairs] = await this.#pages("/platform/v1/pairs?limit=200", async (path) => {
      const answer = await this.http.sendUntil({ method: "GET", path });
      return answer.read((members) => ({
        items: members.required("pairs", list(readPair)),
        nextCursor: members.required("nextCursor", (value, at) => (value === null ? undefined : text(value, at))),
      }));
    });
    return pairs;
  }

  /** Removes a pair at the gateway. The enforcer's own pins are another matter: send a revocation too. */
  async removePair(pairId: string): Promise<void> {
    await this.http.sendUntil({ method: "DELETE", path: `/platform/v1/pairs/${segment(pairId)}` });
  }

  /** Presents a voucher for a device of one's own, so that the gateway accepts its decisions. */
  async present(voucher: Statement): Promise<void> {
    const body = `{"voucher":${voucher.source}}`;
    await this.http.sendUntil({ method: "POST", path: "/platform/v1/pairs", body });
  }

  /** Builds a prompt to one enforcer. Keep what you need of it before you send it: the enforcer may be faster. */
  async buildPrompt(enforcerId: string, draft: PromptDraft, pins: Pins): Promise<BuiltPrompt> {
    return buildPrompt(draft, this.identity, enforcerId, pins, this.#now);
  }

  /** Sends a prompt, or the same again, and returns the gateway's word on it. What becomes of it later comes over a channel. */
  async sendPrompt(prompt: BuiltPrompt): Promise<PromptStatus> {
    const call: Call = { method: "POST", path: "/v1/prompt", body: prompt.envelope, idempotencyKey: prompt.requestId };
    const ack = (await this.http.sendUntil(call)).read((members) => ({
      requestId: members.required("requestId", id),
      promptHash: members.required("promptHash", sha256),
      status: members.required("status", word(PROMPT_STATUSES)),
    }));
    const isOfPrompt = ack.requestId === prompt.requestId && ack.promptHash === prompt.promptHash;
    if (!isOfPrompt) throw new CallError("not-understood", "it is about another prompt");
    return ack.status;
  }

  /** A session of an enforcer that this person is paired with; `undefined` if the gateway has none. */
  async session(sessionId: string): Promise<Session | undefined> {
    try {
      const answer = await this.http.sendUntil({ method: "GET", path: `/v1/session/${segment(sessionId)}` });
      return answer.read((members) => ({
        sessionId: members.required("sessionId", id),
        enforcerId: members.required("enforcerId", id),
        agentHost: members.optional("agentHost", text),
        state: members.optional("state", text),
        updatedAt: members.optional("updatedAt", time),
        endedAt: members.optional("endedAt", time),
        snapshots: members.optional("snapshots", readSnapshots) ?? new Map<string, JsonObject>(),
      }));
    } catch (error) {
      if (error instanceof CallError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** The receipt of one use of a decision that this device has sent; `undefined` if the gateway has none yet. */
  async receipt(sent: SentDecision, use: number, pins: Pins): Promise<Receipt | undefined> {
    const session = await this.session(receiptSession(sent.requestId, use));
    const event = session?.snapshots.get("summary");
    if (event === undefined) return undefined;
    return openReceipt(await openSnapshot(event, this.identity, pins, this.#now), sent, use);
  }

  /** What a machine remembers of this person's answers on any device, newest first. Throws `HistoryError` and `SnapshotError`. */
  async history(machine: Pin, pins: Pins): Promise<readonly RememberedAnswer[]> {
    const { id } = this.identity;
    const session = await this.session(historySession(machine.fingerprint, id));
    const event = session?.snapshots.get("summary");
    if (event === undefined) return [];
    try {
      return openHistory(await openSnapshot(event, this.identity, pins, this.#now), machine, id);
    } catch (error) {
      const { cause } = error as Error;
      // It was sealed before this device was connected.
      if (cause instanceof SealError && cause.reason === "not-for-this-device") return [];
      throw error;
    }
  }

  /**
   * What this device, with its lock and what it has kept, can prove of a decision of its own, as the text of a bundle. Throws
   * {@link ProofError}.
   */
  async bundle(requestId: string, pins: Pins, asked?: Asked, lock?: LockKey): Promise<string> {
    const { decision: found } = await this.status(requestId);
    if (found === undefined) throw new ProofError("not-decided");
    const decision = understood(() => readDecision(found.source));
    const { keys } = this.identity;
    const isOwn = decision.signerKeyId === keys.fingerprint && verifyDecisionSignature(decision, keys.bundle.signing);
    if (!isOwn) throw new ProofError("other-device");
    for (const pin of pins.all.filter(({ party }) => party.role === "enforcer")) {
      try {
        const receipt = await this.receipt(sentDecision(found.source, pin.party.id), 1, pins);
        if (receipt !== undefined) return ownBundle(found.source, this.identity, pin, receipt, asked, lock);
      } catch (error) {
        // It may be that of another machine.
        if (!(error instanceof ReceiptError && error.reason === "other-enforcer")) throw error;
      }
    }
    throw new ProofError("not-reported");
  }

  /** A ticket for one WebSocket, which is valid once and for 30 seconds: a browser can't send headers with one. */
  async ticket(signal?: AbortSignal): Promise<string> {
    const answer = await this.http.send({ method: "POST", path: "/platform/v1/tickets" }, signal);
    return answer.read((members) => members.required("ticket", text));
  }
}

/** This device has no proof of an exchange. */
export class ProofError extends CountersignError {
  readonly code: "not-decided" | "other-device" | "not-reported";
  readonly next: string;

  constructor(code: ProofError["code"]) {
    const [message, next] = PROOF_WORDS[code];
    super(message);
    this.code = code;
    this.next = next;
  }
}

const PROOF_WORDS = {
  "not-decided": ["nobody has decided it", "Decide it first."],
  "other-device": ["it was decided with another device", "Export the proof on the device that decided it."],
  "not-reported": ["the machine has not reported what it did", "Try again later, or export it on the machine."],
} as const;

function keysOrStop(publicKey: string): KeyBundle {
  try {
    return parseBundle(publicKey);
  } catch {
    throw new PairingError("unknown-keys");
  }
}

function readPair(value: JsonValue, at: string): PairEntry {
  const members = new Members(value, at);
  return {
    pairId: members.required("pairId", text),
    enforcerId: members.required("enforcerId", id),
    approverId: members.required("approverId", id),
    enforcerLabel: members.optional("enforcerLabel", text),
    workspaceName: members.optional("workspaceName", text),
    signingKey: members.optional("signingKey", text),
    createdAt: members.optional("createdAt", time),
    vouchedUntil: members.optional("vouchedUntil", time),
  };
}

function readSnapshots(value: JsonValue, at: string): ReadonlyMap<string, JsonObject> {
  const entries = [...object(value, at).members].map(
    ([name, event]) => [name, object(event, `${at}.${name}`)] as const,
  );
  return new Map(entries);
}
