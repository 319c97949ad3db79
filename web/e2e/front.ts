// A network in front of a gateway, which serves the page itself. A test can cut it, and change what is passed on.

import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { connect, type Socket } from "node:net";

/** The files of the page, which no test changes on the way. */
const PAGE = /^\/(|join|pair|docs|assets\/[\w.-]+|sw\.js|manifest\.webmanifest)$/;

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
    this.#pass(request, response, PAGE.test(path) ? undefined : this.tamper);
  }

  #pass(request: IncomingMessage, response: ServerResponse, tamper: Tamper | undefined): void {
    const { hostname, port } = this.#gateway;
    // What is pushed can't be changed here, so a gateway that lies pushes nothing.
    if (tamper !== undefined && request.url?.startsWith("/v1/sse/") === true) {
      response.writeHead(404).end();
      return;
    }
    const onward = httpRequest(
      { hostname, port, path: request.url, method: request.method, headers: request.headers },
      (answer) => {
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
