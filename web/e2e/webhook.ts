// A receiver of webhooks, which verifies them as Standard Webhooks says, with nothing but Node.

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";

export interface Hook {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Whether a message was signed with this secret, less than five minutes ago. */
export function isSigned({ headers, body }: Hook, secret: string): boolean {
  const [id, at] = [headers["webhook-id"], headers["webhook-timestamp"]];
  if (Math.abs(Date.now() / 1000 - Number(at)) > 300) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const wanted = createHmac("sha256", key).update(`${id}.${at}.${body}`).digest();
  return String(headers["webhook-signature"])
    .split(" ")
    .some((one) => {
      const given = Buffer.from(one.replace(/^v1,/, ""), "base64");
      return one.startsWith("v1,") && given.length === wanted.length && timingSafeEqual(given, wanted);
    });
}

export class WebhookReceiver {
  readonly #server: Server;
  readonly got: Hook[] = [];
  url = "";
  /** What it answers. */
  status = 204;

  constructor() {
    this.#server = createServer(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      this.got.push({ headers: request.headers, body: Buffer.concat(parts).toString() });
      response.writeHead(this.status).end();
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("there is no port");
    this.url = `http://127.0.0.1:${address.port}/hook`;
  }

  async end(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
