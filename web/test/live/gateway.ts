// A real gateway on a free port. `COUNTERSIGN_GATEWAY` is the program (`cargo build -p countersign-server`).

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Keys {
  readonly enforcer: string;
  readonly approver: string;
  readonly operator: string;
}

export class Gateway {
  readonly #folder = mkdtempSync(join(tmpdir(), "countersign-web-"));
  #child: ChildProcess | undefined;
  url = "";
  keys: Keys = { enforcer: "", approver: "", operator: "" };

  /** Starts it; a second time with the same data, on the same port. */
  async start(): Promise<void> {
    const program = process.env["COUNTERSIGN_GATEWAY"];
    if (program === undefined) throw new Error("set COUNTERSIGN_GATEWAY to the program countersign-gateway");
    const listen = this.url === "" ? "127.0.0.1:0" : this.url.replace("http://", "");
    const child = spawn(program, ["dev", "--json", "--listen", listen, "--data", this.#folder], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#child = child;
    const first = await new Promise<string>((resolve, reject) => {
      let text = "";
      child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
      });
      child.on("exit", (code) => reject(new Error(`the gateway has ended with ${code}`)));
    });
    const said = JSON.parse(first) as { url: string; enforcerKey: string; approverKey: string; operatorKey: string };
    this.url = said.url;
    this.keys = { enforcer: said.enforcerKey, approver: said.approverKey, operator: said.operatorKey };
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
    this.#child = undefined;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
