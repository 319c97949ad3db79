// Machines that trust an authority of the tests, and the one of a person who runs a gateway on it with `countersign up`.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { Machine } from "./stage.ts";

/** A machine that trusts other authorities than the system's: those whose certificates are in a file. */
export class TrustingMachine extends Machine {
  readonly #trusted: string;

  constructor(id: string, trusted: string) {
    super(id);
    this.#trusted = trusted;
  }

  override get env(): NodeJS.ProcessEnv {
    return { ...super.env, SSL_CERT_FILE: this.#trusted };
  }
}

/** A machine whose home is empty, as its owner found it. */
export class Laptop extends TrustingMachine {
  constructor(trusted: string) {
    super("laptop", trusted);
  }

  override get env(): NodeJS.ProcessEnv {
    return { ...super.env, USER: "ada" };
  }

  get config(): string {
    return join(this.home, "data", "countersign", "gateway", "gateway.toml");
  }

  get port(): number {
    return Number(/listen = "127\.0\.0\.1:(\d+)"/.exec(readFileSync(this.config, "utf8"))?.[1]);
  }

  /** Runs the gateway's own program with its configuration. */
  gateway(...args: readonly string[]): string {
    const all = [...args, "--config", this.config];
    const done = spawnSync("countersign-gateway", all, { env: this.env, encoding: "utf8", timeout: 20_000 });
    if (done.status !== 0) throw new Error(`countersign-gateway ${args.join(" ")}: ${done.stderr}`);
    return done.stdout;
  }

  /** An invitation that only joins. */
  invite(approver: string): string {
    const said = this.gateway("invite", "--json", "--tenant", "home", "--role", "approver", "--id", approver);
    return (JSON.parse(said) as { link: string }).link;
  }
}
