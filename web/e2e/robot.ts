// A machine in this process, by the protocol library: for requests that the tool makes only together with an agent's host.

import { effectHash, readArtifact } from "../src/protocol/artifact.ts";
import { Http, join, newPin, Pins, parseJoinLink, parseLock, Timestamp } from "../src/protocol/index.ts";
import { formatBundle, parseBundle } from "../src/protocol/keys.ts";
import { formatPairingLink } from "../src/protocol/link.ts";
import { id, text } from "../src/protocol/members.ts";
import { typedDigits, verifyLinkAnswer } from "../src/protocol/pairing.ts";
import { type ReceiptOutcome, receiptSession, signReceipt } from "../src/protocol/receipt.ts";
import { type VerifiedDecision, verifyDecision } from "../src/protocol/reply.ts";
import { type BuiltRequest, buildRequest, type RequestDraft } from "../src/protocol/request.ts";
import { type SnapshotType, sealSnapshot } from "../src/protocol/session.ts";
import { type Device, newDevice, Random } from "../test/random.ts";
import { type Stage, until } from "./stage.ts";

const now = (): Timestamp => Timestamp.ofMillis(Date.now());

/** The payload of a patch that adds so many files with so many lines each. */
export function patch(files: number, lines: number): string {
  const names = Array.from({ length: files }, (_, at) => `src/auth/file${at}.ts`);
  const added = (name: string): string =>
    Array.from({ length: lines }, (_, at) => `+line ${at}\tof ${name}\n`).join("");
  const diff = names.map((name) => `--- /dev/null\n+++ b/${name}\n@@ -0,0 +1,${lines} @@\n${added(name)}`);
  return JSON.stringify({
    schema: "org.proto.payload",
    version: 2,
    diff: diff.join(""),
    files: names.map((path) => ({ path, status: "added", added: lines, removed: 0, resultDigest: "0".repeat(64) })),
    effects: [],
  });
}

/** The payload of a question with choices, as the hook of Claude Code writes it. */
export function asked(question: string, options: readonly (readonly [label: string, description: string])[]): string {
  const place = "/tool_input/questions/0";
  return JSON.stringify({
    schema: "org.proto.payload",
    version: 2,
    summary: `The agent asks: ${question}`,
    changes: [question, ...options.map(([label], at) => `${at + 1}. ${label}`)],
    agent: "Claude Code",
    project: "shop",
    task: "Make the cart use Decimal",
    call: {
      kind: "hook.claude",
      moment: "PreToolUse",
      tool: "AskUserQuestion",
      folder: "/home/robot/shop",
      message: {
        tool_name: "AskUserQuestion",
        tool_input: {
          questions: [
            {
              question,
              header: "Database",
              multiSelect: false,
              options: options.map(([label, description]) => ({ label, description })),
            },
          ],
        },
      },
      shown: ["/tool_name", `${place}/question`, ...options.map((_, at) => `${place}/options/${at}/label`)],
    },
  });
}

/** The buttons of such a question, as the hook asks for them. */
export function choices(...captions: readonly string[]): NonNullable<RequestDraft["actions"]> {
  return captions.map((caption, at) => ({
    id: `choice-${at + 1}`,
    caption,
    style: "secondary",
    decision: "approve",
  }));
}

export class Robot {
  readonly #http: Http;
  readonly device: Device;
  readonly gateway: string;
  pins = new Pins();

  private constructor(http: Http, device: Device, gateway: string) {
    this.#http = http;
    this.device = device;
    this.gateway = gateway;
  }

  static async join(stage: Stage, name: string, random = new Random(Date.now())): Promise<Robot> {
    const joined = await join(parseJoinLink(stage.invite("enforcer", name)));
    const http = new Http({ gateway: joined.gateway, credential: joined.credential });
    return new Robot(http, await newDevice(random, joined.id), joined.gateway);
  }

  /** The same machine with new keys, as after it was set up again. */
  async withNewKeys(): Promise<Robot> {
    return new Robot(this.#http, await newDevice(new Random(Date.now() + 1), this.device.id), this.gateway);
  }

  /** Starts a pairing. `finish` waits for the answer, and pins whoever answered; by code it returns the digits. */
  async pair(isTyped = false): Promise<{ link: string; code: string; finish: () => Promise<string> }> {
    const { bundle, fingerprint } = this.device.keys;
    const body = JSON.stringify({
      enforcerId: this.device.id,
      publicKey: formatBundle(bundle),
      enforcerLabel: this.device.id,
    });
    const { code, nonce } = (await this.#http.sendUntil({ method: "POST", path: "/v1/pairing/initiate", body })).read(
      (members) => ({
        code: members.required("code", text),
        nonce: members.required("nonce", id),
      }),
    );
    const secret = crypto.getRandomValues(new Uint8Array(16));
    const finish = async (): Promise<string> => {
      const answer = await until("an answer to the pairing", async () => {
        const status = await this.#http.sendUntil({ method: "GET", path: `/v1/pairing/status/${nonce}` });
        return status.read((members) => ({
          approverId: members.optional("approverId", id),
        })).approverId === undefined
          ? undefined
          : status;
      });
      const answered = answer.read((members) => ({
        approverId: members.required("approverId", id),
        publicKey: members.required("publicKey", text),
        lock: members.optional("org.countersign.lock", text),
      }));
      const [{ approverId }, approver] = [answered, parseBundle(answered.publicKey)];
      const lock = answered.lock === undefined ? undefined : parseLock(answered.lock);
      const transcript = { enforcerId: this.device.id, enforcer: bundle, approverId, approver, nonce, lock };
      this.pins = this.pins.add({ ...newPin({ role: "approver", id: approverId }, approver, now()), lock });
      if (isTyped) return typedDigits(transcript);
      verifyLinkAnswer(transcript, secret);
      return "";
    };
    return {
      link: formatPairingLink({ gateway: this.gateway, code, enforcerId: this.device.id, fingerprint, secret }),
      code,
      finish,
    };
  }

  async ask(draft: Partial<RequestDraft> & { payload: string }, seconds = 600): Promise<BuiltRequest> {
    const whole = {
      artifactType: "command.review",
      repoRef: "repo:x",
      repoName: "acme/shop",
      expiresAt: now().plus(seconds * 1_000),
      ...draft,
    } as const;
    const built = await buildRequest(whole, this.device, this.pins, now());
    await this.#http.sendUntil({
      method: "POST",
      path: "/v1/artifacts",
      body: built.envelope,
      idempotencyKey: built.requestId,
    });
    return built;
  }

  /** The ids of the requests that people ask for again, from now on. */
  async refreshes(): Promise<string[]> {
    const answer = await this.#http.sendUntil({ method: "POST", path: "/platform/v1/tickets" });
    const ticket = answer.read((members) => members.required("ticket", text));
    const address = `${this.gateway.replace(/^http/, "ws")}/v1/ws?role=enforcer&id=${this.device.id}`;
    const socket = new WebSocket(address, [`ticket.${ticket}`]);
    const asked: string[] = [];
    socket.onmessage = ({ data }) => {
      const { msgType, requestId } = JSON.parse(`${data}`) as { msgType: string; requestId: string };
      if (msgType === "refresh.request") asked.push(requestId);
    };
    await new Promise((resolve) => {
      socket.onopen = resolve;
    });
    return asked;
  }

  command(argv: readonly string[], more: object = {}): string {
    return JSON.stringify({
      schema: "org.proto.payload",
      version: 2,
      state: "examined",
      argv,
      cwd: "/home/robot/shop",
      effects: [],
      ...more,
    });
  }

  async withdraw({ requestId }: BuiltRequest): Promise<void> {
    const envelope = {
      msgType: "exchange.withdrawn",
      requestId,
      createdAt: `${now()}`,
      sender: { enforcerId: this.device.id },
      body: { requestId, state: "withdrawn" },
    };
    await this.#http.sendUntil({
      method: "POST",
      path: `/v1/exchanges/${requestId}/withdraw`,
      body: JSON.stringify(envelope),
    });
  }

  /** The verified decision about a request. */
  async decision(built: BuiltRequest): Promise<VerifiedDecision & { source: string }> {
    const answer = await until("a decision", async () => {
      const found = await this.#http.sendUntil({
        method: "GET",
        path: `/v1/exchanges/${built.requestId}/wait?timeout=5`,
      });
      return found.status === 204 ? undefined : found;
    });
    const { source } = answer.envelope().body;
    return { ...(await verifyDecision(source, built, this.device, this.pins, now())), source };
  }

  /** Whether there is no decision about a request. */
  async isUndecided({ requestId }: BuiltRequest): Promise<boolean> {
    return (
      (await this.#http.sendUntil({ method: "GET", path: `/v1/exchanges/${requestId}/wait?timeout=0` })).status === 204
    );
  }

  async sendSnapshot(
    sessionId: string,
    snapshotId: string,
    payload: string,
    snapshotType: SnapshotType = "summary",
  ): Promise<void> {
    const recipients = this.pins.active("approver", now()).map(({ party, bundle }) => ({ id: party.id, bundle }));
    const draft = { sessionId, snapshotId, snapshotType, payload };
    const snapshot = await sealSnapshot(draft, this.device, recipients, now());
    await this.#http.sendUntil({ method: "POST", path: "/v1/session/event", body: snapshot });
  }

  async startSession(sessionId: string): Promise<void> {
    const event = {
      eventType: "session.start",
      sessionId,
      agentHost: "claude-code",
      repoRef: "repo:x",
      createdAt: `${now()}`,
    };
    await this.#http.sendUntil({ method: "POST", path: "/v1/session/event", body: JSON.stringify(event) });
  }

  /** Reports what was done. `signer` can be somebody else, who must not be believed. */
  async report(
    built: BuiltRequest,
    decision: VerifiedDecision,
    outcome: ReceiptOutcome,
    signer = this.device.keys.signer,
  ): Promise<void> {
    const effect = effectHash("command.review", readArtifact(built.artifact).payload, "acme/shop");
    const receipt = await signReceipt(signer, {
      requestId: built.requestId,
      use: 1,
      decisionHash: decision.hash,
      decisionNonce: decision.nonce,
      effectHash: effect,
      enforcerId: this.device.id,
      at: `${now()}`,
      outcome,
    });
    await this.sendSnapshot(receiptSession(built.requestId, 1), "receipt", receipt);
  }
}
