// npm's web-push-testing as the push service: it gives out subscriptions, and decrypts what the gateway sends to them.

import { type ChildProcess, spawn } from "node:child_process";
import { createPublicKey, verify } from "node:crypto";
import { join } from "node:path";

import { until } from "./stage.ts";

const PROGRAM = join(import.meta.dirname, "..", "..", "tests", "notifications", "push_service.mjs");

export interface Subscription {
  readonly endpoint: string;
  readonly keys: { readonly p256dh: string; readonly auth: string };
  readonly clientHash: string;
}

/** What a request to the service was, as it came. */
export interface Received {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export class PushService {
  readonly #child: ChildProcess;
  url = "";

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(): Promise<PushService> {
    const child = spawn(process.execPath, [PROGRAM], { stdio: ["pipe", "pipe", "inherit"] });
    const service = new PushService(child);
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    service.url = await until("the push service runs", () => /^http:\S+(?=\n)/.exec(said)?.[0]);
    return service;
  }

  async #call<T>(path: string, body: object = {}): Promise<T> {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${this.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  /** A subscription for messages of whoever has this key. */
  async subscribe(applicationServerKey: string): Promise<Subscription> {
    // It wants this word as a text.
    const options = { userVisibleOnly: "true", applicationServerKey };
    return (await this.#call<{ data: Subscription }>("/subscribe", options)).data;
  }

  /** What the service has decrypted for a subscription. */
  async messages(of: Subscription): Promise<readonly string[]> {
    const { clientHash } = of;
    return (await this.#call<{ data: { messages: string[] } }>("/get-notifications", { clientHash })).data.messages;
  }

  /** Everything that came, as it came. */
  received(): Promise<readonly Received[]> {
    return this.#call<Received[]>("/received");
  }

  end(): void {
    this.#child.stdin?.end();
  }
}

/** What a message says of its sender, if the key that it names has signed that. The service itself does not look at it. */
export function senderOf({ headers }: Received): { readonly key: string; readonly aud: string; readonly exp: number } {
  const [, token, key] = /^vapid t=([^,]+), ?k=(\S+)$/.exec(headers["authorization"] ?? "") ?? [];
  if (token === undefined || key === undefined) throw new Error("the message names no sender");
  const [head, claims, signature] = token.split(".");
  const point = Buffer.from(key, "base64url");
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString("base64url"));
  const jwk = { kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "" };
  const publicKey = createPublicKey({ key: jwk, format: "jwk" });
  const signed = Buffer.from(`${head}.${claims}`);
  const given = Buffer.from(signature ?? "", "base64url");
  if (!verify("sha256", signed, { key: publicKey, dsaEncoding: "ieee-p1363" }, given))
    throw new Error("the sender's signature is wrong");
  return { key, ...(JSON.parse(Buffer.from(claims ?? "", "base64url").toString()) as { aud: string; exp: number }) };
}
