// The page and the gateway on one origin: files of `dist` with the headers that a gateway sends, everything else passed on.
// A test can change what is passed on.

import { readFileSync } from "node:fs";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const DIST = process.env["COUNTERSIGN_DIST"] ?? new URL("../dist/", import.meta.url).pathname;

export const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types countersign-worker",
].join("; ");

const TYPES: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript",
  css: "text/css",
  png: "image/png",
  webmanifest: "application/manifest+json",
};

/** Changes the body of an answer of the gateway; the same text to leave it. */
export type Tamper = (path: string, body: string) => string;

export class Front {
  readonly #gateway: URL;
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();
  url = "";
  /** Whether the network is there. */
  isUp = true;
  /** Whether WebSockets pass. */
  hasSockets = true;
  tamper: Tamper | undefined;
  /** Every path that was asked for. */
  readonly asked: string[] = [];

  constructor(gateway: string) {
    this.#gateway = new URL(gateway);
  }

  async start(port: number): Promise<void> {
    const server = createServer((request, response) => this.#serve(request, response));
    server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket as Socket, head));
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(port, "localhost", resolve));
    this.#server = server;
    this.url = `http://localhost:${port}`;
  }

  /** Cuts every connection, as a network that goes away. */
  down(): void {
    this.isUp = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  up(): void {
    this.isUp = true;
  }

  async stop(): Promise<void> {
    this.down();
    await new Promise((resolve) => this.#server?.close(resolve) ?? resolve(undefined));
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    if (!this.isUp) {
      request.socket.destroy();
      return;
    }
    const path = new URL(request.url ?? "/", this.url || "http://localhost").pathname;
    this.asked.push(path);
    const file =
      path === "/" || path === "/join" || path === "/pair"
        ? "index.html"
        : /^\/(assets\/[\w.-]+|sw\.js|manifest\.webmanifest)$/.exec(path)?.[1];
    if (file === undefined) this.#pass(request, response);
    else this.#file(file, response, /\bgzip\b/.test(String(request.headers["accept-encoding"])));
  }

  #file(file: string, response: ServerResponse, isCompressed: boolean): void {
    try {
      const body = readFileSync(join(DIST, file));
      response.writeHead(200, {
        "Content-Type": TYPES[file.split(".").at(-1) ?? ""] ?? "application/octet-stream",
        "Content-Security-Policy": CSP,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        Vary: "Accept-Encoding",
        ...(isCompressed ? { "Content-Encoding": "gzip" } : {}),
        "Cache-Control": file.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
      });
      response.end(isCompressed ? gzipSync(body) : body);
    } catch {
      response.writeHead(404).end();
    }
  }

  #pass(request: IncomingMessage, response: ServerResponse): void {
    const { hostname, port } = this.#gateway;
    // What is pushed can't be changed here, so a gateway that lies pushes nothing.
    if (this.tamper !== undefined && request.url?.startsWith("/v1/sse/") === true) {
      response.writeHead(404).end();
      return;
    }
    const onward = httpRequest(
      { hostname, port, path: request.url, method: request.method, headers: request.headers },
      (answer) => {
        const { tamper } = this;
        if (tamper === undefined) {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
          return;
        }
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("end", () => {
          const body = tamper(request.url ?? "", Buffer.concat(chunks).toString("utf8"));
          const { "content-length": _, ...headers } = answer.headers;
          response.writeHead(answer.statusCode ?? 502, headers);
          response.end(body);
        });
      },
    );
    onward.on("error", () => response.writeHead(502).end());
    request.pipe(onward);
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    if (!this.isUp || !this.hasSockets) {
      socket.destroy();
      return;
    }
    const onward = connect(Number(this.#gateway.port), this.#gateway.hostname, () => {
      const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`);
      onward.write(`${request.method} ${request.url} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
      onward.write(head);
      socket.pipe(onward).pipe(socket);
    });
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
    socket.on("close", () => onward.destroy());
  }
}
