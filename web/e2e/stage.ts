// A real gateway with the page in front of it on one origin, machines with the real tool, and a real browser.
//
// `COUNTERSIGN_BIN` is the folder of the programs `countersign` and `countersign-gateway`. `COUNTERSIGN_PAGE` may name the
// folder of a build, which is then tested in place of the page in the gateway.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Front } from "./front.ts";

const folderOf = (name: string): string => mkdtempSync(join(tmpdir(), `countersign-page-${name}-`));

function bin(name: string): string {
  const folder = process.env["COUNTERSIGN_BIN"];
  if (folder === undefined) throw new Error("set COUNTERSIGN_BIN to the folder of countersign and countersign-gateway");
  return join(folder, name);
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("there is no port");
  return address.port;
}

export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  millis = 15_000,
): Promise<T> {
  const end = Date.now() + millis;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`not within ${millis} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A gateway, and the page in front of it. */
export class Stage {
  readonly folder = folderOf("gateway");
  #gateway: ChildProcess | undefined;
  #port = 0;
  #settings: readonly string[] = [];
  front!: Front;
  readonly machines: Machine[] = [];

  get url(): string {
    return this.front.url;
  }

  /** Starts the gateway. `settings` are further lines of its configuration. */
  async start(...settings: readonly string[]): Promise<void> {
    this.#settings = settings;
    this.front = new Front();
    await this.front.start();
    await this.#choosePort();
    await this.startGateway();
  }

  async #choosePort(): Promise<void> {
    this.#port = await freePort();
    this.front.gateway = new URL(`http://127.0.0.1:${this.#port}`);
    const config = [
      `listen = "127.0.0.1:${this.#port}"`,
      `public_url = "${this.front.url}"`,
      `data = "${join(this.folder, "data")}"`,
      ...this.#settings,
    ];
    writeFileSync(this.config, `${config.join("\n")}\n[rates]\ncredential = { per_second = 500, burst = 5000 }\n`);
  }

  get config(): string {
    return join(this.folder, "gateway.toml");
  }

  /** Starts the gateway with the same data as before. */
  async startGateway(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#runGateway();
        return;
      } catch (error) {
        // Somebody else may have taken the port since it was free; the gateway ends then.
        if (this.#gateway?.exitCode === null || attempt === 5) throw error;
        await this.#choosePort();
      }
    }
  }

  async #runGateway(): Promise<void> {
    const child = spawn(bin("countersign-gateway"), ["serve", "--config", this.config], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-4_000);
    });
    this.#gateway = child;
    await until(`the gateway runs: ${said}`, async () => {
      if (child.exitCode !== null) throw new Error(`the gateway has ended: ${said}`);
      return fetch(`http://127.0.0.1:${this.#port}/readyz`).then(
        (answer) => answer.ok,
        () => false,
      );
    });
  }

  async stopGateway(): Promise<void> {
    const child = this.#gateway;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
  }

  /** An invitation link. */
  invite(role: "approver" | "enforcer", id: string): string {
    const args = ["invite", "--config", this.config, "--tenant", "acme", "--role", role, "--id", id, "--json"];
    const done = spawnSync(bin("countersign-gateway"), args, { encoding: "utf8", timeout: 20_000 });
    if (done.status !== 0) throw new Error(`invite: ${done.stderr}`);
    const said = JSON.parse(done.stdout) as { link: string };
    return said.link;
  }

  /** A key for an id, as an operator makes it. */
  key(role: "approver" | "enforcer", id: string): string {
    const args = ["keys", "create", "--config", this.config, "--tenant", "acme", "--role", role, "--id", id];
    const done = spawnSync(bin("countersign-gateway"), args, { encoding: "utf8", timeout: 20_000 });
    const key = /\bcs\w*_\S+/.exec(done.stdout)?.[0];
    if (done.status !== 0 || key === undefined) throw new Error(`keys create: ${done.stderr}`);
    return key;
  }

  /** Ends the credentials of an id. */
  revokeKeys(id: string): void {
    const run = (...args: string[]): string => {
      const done = spawnSync(
        bin("countersign-gateway"),
        ["keys", ...args, "--config", this.config, "--tenant", "acme"],
        { encoding: "utf8", timeout: 20_000 },
      );
      if (done.status !== 0) throw new Error(`keys: ${done.stderr}`);
      return done.stdout;
    };
    for (const line of run("list").split("\n")) {
      const key = /\b[0-9a-z]{42}\b/.exec(line)?.[0];
      if (key !== undefined && line.includes(id)) run("revoke", "--key", key);
    }
  }

  /** A machine that has joined, with the real tool. */
  async machine(id: string): Promise<Machine> {
    const machine = new Machine(id);
    this.machines.push(machine);
    await machine.run(["join", "-"], this.invite("enforcer", id));
    return machine;
  }

  async end(): Promise<void> {
    for (const machine of this.machines) machine.end();
    await this.stopGateway();
    await this.front.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface Running {
  readonly child: ChildProcess;
  /** What it has said until now. */
  text(): string;
  /** Its exit code. */
  readonly ended: Promise<number | null>;
}

/** The machine of an agent: a home of its own, and the real tool. */
export class Machine {
  readonly id: string;
  readonly home: string;
  readonly work: string;
  readonly #children: ChildProcess[] = [];

  constructor(id: string) {
    this.id = id;
    this.home = folderOf(id.replace(/\W/g, ""));
    this.work = join(this.home, "shop");
    mkdirSync(this.work);
  }

  get env(): NodeJS.ProcessEnv {
    return {
      PATH: `${process.env["COUNTERSIGN_BIN"]}:${process.env["PATH"]}`,
      HOME: this.home,
      XDG_DATA_HOME: join(this.home, "data"),
      XDG_RUNTIME_DIR: this.home,
      TERM: "xterm",
      LANG: "C.UTF-8",
    };
  }

  /** Runs the tool to its end. It calls through this process, so it must not wait for it. */
  async run(args: readonly string[], input = "", exitCodes: readonly number[] = [0]): Promise<string> {
    const running = this.#spawn(bin("countersign"), args, "pipe");
    running.child.stdin?.end(input);
    const code = await running.ended;
    if (!exitCodes.includes(code ?? -1)) throw new Error(`countersign ${args.join(" ")}: ${code} ${running.text()}`);
    return running.text();
  }

  /** Starts the tool. */
  start(...args: string[]): Running {
    return this.#spawn(bin("countersign"), args, "ignore");
  }

  /** Starts the tool in a terminal, and types each answer when its question is there. */
  startInTerminal(args: readonly string[], answers: readonly (readonly [question: string, answer: string])[]): Running {
    const running = this.#spawn("script", ["-qfec", `${bin("countersign")} ${args.join(" ")}`, "/dev/null"], "pipe");
    const type = async (): Promise<void> => {
      for (const [question, answer] of answers) {
        await until(`the question ${question}`, () => running.text().includes(question), 20_000);
        running.child.stdin?.write(`${answer}\n`);
      }
    };
    void type().catch(() => running.child.kill());
    return running;
  }

  #spawn(program: string, args: readonly string[], input: "ignore" | "pipe"): Running {
    const child = spawn(program, args, { env: this.env, cwd: this.work, stdio: [input, "pipe", "pipe"] });
    this.#children.push(child);
    // A program that does not read its input may have ended before it is written.
    child.stdin?.on("error", () => undefined);
    let said = "";
    const hear = (text: string): void => {
      said += text;
    };
    child.stdout?.setEncoding("utf8").on("data", hear);
    child.stderr?.setEncoding("utf8").on("data", hear);
    return { child, text: () => said, ended: new Promise((resolve) => child.once("exit", resolve)) };
  }

  /** Starts a pairing; returns the link and the tool, which waits for the answer. */
  async pair(): Promise<{ link: string; running: Running }> {
    const running = this.startInTerminal(["pair"], [["Type yes", "yes"]]);
    const link = await until("a pairing link", () => /https?:\/\/\S+\/pair#v1\.\S+/.exec(running.text())?.[0]);
    return { link, running };
  }

  end(): void {
    for (const child of this.#children) if (child.exitCode === null) child.kill("SIGTERM");
    rmSync(this.home, { recursive: true, force: true });
  }
}
