// A network in front of a gateway, which serves the page itself. A test can cut it, and change what is passed on.

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
import { pipeline } from "node:stream";

import { FrameReader, textFrame } from "./frames.ts";
import { TYPES } from "./host.ts";

/** The files of the page, which no test changes on the way. */
const PAGE = /^\/(|join|pair|connect|docs|assets\/[\w.-]+|sw\.js|manifest\.webmanifest)$/;

/** A build of the page that is served in place of the one in the gateway; with the gateway's own headers. */
const BUILD = process.env["COUNTERSIGN_PAGE"];

/** Changes the body of an answer of the gateway; the same text to leave it. */
export type Tamper = (path: string, body: string) => string;

/** What is sent to the page in place of a message: texts, or bytes as they are. */
export type TamperMessage = (message: string) => readonly (string | Buffer)[];

export class Front {
  /** Where the gateway is. */
  gateway = new URL("http://127.0.0.1:1");
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #webSockets = new Set<Socket>();
  url = "";
  /** Whether the network is there. */
  isUp = true;
  /** Whether WebSockets pass. */
  hasSockets = true;
  /** Whether the gateway has tickets for WebSockets, which the specification does not know. */
  hasTickets = true;
  tamper: Tamper | undefined;
  /** Changes the messages of the gateway on WebSockets. */
  tamperMessage: TamperMessage | undefined;
  /** How many WebSockets were asked for. */
  upgrades = 0;
  /** Every path that was asked for. */
  readonly asked: string[] = [];
  /** Every path whose answer was passed on to its end. */
  readonly answered: string[] = [];

  async start(): Promise<void> {
    const server = createServer((request, response) => this.#serve(request, response));
    server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket as Socket, head));
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("there is no port");
    this.#server = server;
    this.url = `http://localhost:${address.port}`;
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
    response.on("finish", () => this.answered.push(path));
    if (!this.hasTickets && path === "/platform/v1/tickets") {
      response.writeHead(404, { "Content-Type": "application/json" }).end('{"error":"no such route"}');
      return;
    }
    if (BUILD !== undefined && PAGE.test(path) && path !== "/docs") {
      void this.#build(BUILD, path, response);
      return;
    }
    this.#pass(request, response, PAGE.test(path) ? undefined : this.tamper);
  }

  /** Serves a file of a build. */
  async #build(folder: string, path: string, response: ServerResponse): Promise<void> {
    const file = /^\/(join|pair|connect)?$/.test(path) ? "/index.html" : path;
    try {
      const { headers } = await fetch(new URL("/", this.gateway));
      const kept = [...headers].filter(([name]) => !/^(content-|transfer-|etag|vary|date|connection)/.test(name));
      const policy = headers.get("content-security-policy") ?? "default-src 'none'";
      const type = TYPES[file.split(".").at(-1) ?? ""] ?? "application/octet-stream";
      const content = readFileSync(join(folder, file));
      response
        .writeHead(200, { ...Object.fromEntries(kept), "Content-Security-Policy": policy, "Content-Type": type })
        .end(content);
    } catch {
      response.writeHead(404).end();
    }
  }

  #pass(request: IncomingMessage, response: ServerResponse, tamper: Tamper | undefined): void {
    const { hostname, port } = this.gateway;
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
          // A gateway that ends in the middle of an answer ends it here too.
          pipeline(answer, response, () => undefined);
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

  /** Hangs up every WebSocket; the next ones pass. */
  hangUp(): void {
    for (const socket of this.#webSockets) socket.destroy();
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.upgrades += 1;
    if (!this.isUp || !this.hasSockets) {
      socket.destroy();
      return;
    }
    this.#webSockets.add(socket);
    const onward = connect(Number(this.gateway.port), this.gateway.hostname, () => {
      // A message that is compressed could not be changed here.
      const plain = Object.entries(request.headers).filter(([name]) => name !== "sec-websocket-extensions");
      const headers = plain.map(([name, value]) => `${name}: ${value}`);
      onward.write(`${request.method} ${request.url} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
      onward.write(head);
      socket.pipe(onward);
      this.#passMessages(onward, socket);
    });
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
    socket.on("close", () => {
      this.#webSockets.delete(socket);
      onward.destroy();
    });
  }

  /** Passes the answer to the upgrade on, then each message as a test wants it. */
  #passMessages(onward: Socket, socket: Socket): void {
    const reader = new FrameReader();
    let head: Buffer | undefined = Buffer.alloc(0);
    onward.on("data", (piece: Buffer) => {
      let frames = piece;
      if (head !== undefined) {
        head = Buffer.concat([head, piece]);
        const end = head.indexOf("\r\n\r\n");
        if (end < 0) return;
        socket.write(head.subarray(0, end + 4));
        frames = head.subarray(end + 4);
        head = undefined;
      }
      for (const received of reader.feed(frames)) {
        const sent =
          "control" in received ? [received.control] : (this.tamperMessage?.(received.text) ?? [received.text]);
        for (const one of sent) socket.write(typeof one === "string" ? textFrame(one) : one);
      }
    });
    onward.on("end", () => socket.end());
  }
}
