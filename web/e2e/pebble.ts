// A real authority that speaks ACME: Debian's pebble, with its own name server, in which every name has one address.

import { type ChildProcess, spawn } from "node:child_process";
import { Resolver } from "node:dns/promises";
import { readFileSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";

import { Authority } from "./authority.ts";
import { freePort, until } from "./stage.ts";

export class Pebble {
  /** Signs pebble's own certificate, with which it speaks HTTPS. */
  readonly authority = new Authority();
  readonly #children: ChildProcess[] = [];
  #said = "";
  #port = 0;
  #names = 0;
  /** The file with the root of what it issues. */
  readonly root = join(this.authority.folder, "root.pem");

  get directory(): string {
    return `https://localhost:${this.#port}/dir`;
  }

  /** Every name is `address`, and there it looks for challenges at `tlsPort`. */
  async start(address: string, tlsPort: number): Promise<void> {
    const own = this.authority.issue("pebble", "DNS:localhost", "serverAuth");
    const [port, management, names] = [await freePort(), await freePort(), await freePort()];
    [this.#port, this.#names] = [port, names];
    const config = {
      listenAddress: `127.0.0.1:${port}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: own.certificate,
      privateKey: own.key,
      httpPort: 80,
      tlsPort,
      ocspResponderURL: "",
      externalAccountBindingRequired: false,
      certificateValidityPeriod: 90 * 24 * 3_600,
    };
    const file = join(this.authority.folder, "pebble.json");
    writeFileSync(file, JSON.stringify({ pebble: config }));
    const off = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-management", `127.0.0.1:${await freePort()}`];
    const answers = ["-defaultIPv4", address, "-defaultIPv6", "", "-dns01", `127.0.0.1:${names}`];
    this.#spawn("pebble-challtestsrv", [...answers, ...off]);
    this.#spawn("pebble", ["-config", file, "-dnsserver", `127.0.0.1:${names}`]);
    const root = `https://localhost:${management}/roots/0`;
    const text = await until("pebble answers", () => this.#read(root), 30_000).catch((error: unknown) => {
      throw new Error(this.#said, { cause: error });
    });
    writeFileSync(this.root, text);
  }

  /** The addresses that it finds for a name. */
  async resolve(name: string): Promise<string[]> {
    const resolver = new Resolver();
    resolver.setServers([`127.0.0.1:${this.#names}`]);
    return resolver.resolve4(name);
  }

  /** The serial numbers of what it has issued. */
  get issued(): string[] {
    return [...this.#said.matchAll(/Issued certificate serial ([0-9a-f]+)/g)].map(([, serial]) => serial ?? "");
  }

  #spawn(program: string, args: readonly string[]): void {
    const env = { ...process.env, PEBBLE_VA_NOSLEEP: "1", PEBBLE_AUTHZREUSE: "0" };
    const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    child.on("error", (error) => {
      this.#said += `${program}: ${error.message}; install Debian's package pebble\n`;
    });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.#said += text;
      });
    this.#children.push(child);
  }

  #read(url: string): Promise<string | undefined> {
    return new Promise((resolve) => {
      const asked = get(url, { ca: readFileSync(this.authority.certificate) }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (more: string) => {
          text += more;
        });
        answer.on("end", () => resolve(answer.statusCode === 200 ? text : undefined));
      });
      asked.on("error", () => resolve(undefined));
    });
  }

  end(): void {
    for (const child of this.#children) child.kill();
    this.authority.end();
  }
}
