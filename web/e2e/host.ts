// A web server that hosts the page on another origin than the gateway, as docs/page.md says.

import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";

const DIST = join(import.meta.dirname, "..", "dist");

/** The media types of the page's files, by how their names end. */
export const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  webmanifest: "application/manifest+json",
  png: "image/png",
  svg: "image/svg+xml",
};

/** The policy of docs/page.md, for one gateway. */
export function policyFor(gateway: string): string {
  const text = readFileSync(join(import.meta.dirname, "..", "..", "docs", "page.md"), "utf8");
  const policy = /Content-Security-Policy: (.*(?:\n {2}.*)*)/.exec(text)?.[1];
  if (policy === undefined) throw new Error("docs/page.md has no policy");
  return policy
    .replace(/\s+/g, " ")
    .replace("https://gateway.example", gateway)
    .replace("wss://gateway.example", gateway.replace(/^http/, "ws"));
}

export class Host {
  #server: Server | undefined;
  url = "";
  /** The header of every answer. */
  policy = "default-src 'none'";

  async start(): Promise<void> {
    const server = createServer((request, response) => {
      const path = new URL(request.url ?? "/", "http://localhost").pathname;
      const file = /^\/(join|pair|connect)?$/.test(path) ? "/index.html" : path;
      const type = TYPES[file.split(".").at(-1) ?? ""];
      if (type === undefined || file.includes("..")) {
        response.writeHead(404).end();
        return;
      }
      try {
        const content = readFileSync(join(DIST, file));
        response.writeHead(200, { "Content-Type": type, "Content-Security-Policy": this.policy }).end(content);
      } catch {
        response.writeHead(404).end();
      }
    });
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("there is no port");
    this.#server = server;
    this.url = `http://localhost:${address.port}`;
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve) ?? resolve(undefined));
  }
}
