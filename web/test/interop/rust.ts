// The Rust implementation as a child process that answers line by line. `COUNTERSIGN_ANSWER_LINES` is the program
// (`cargo build -p countersign-client --example answer_lines`).

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";

export class Rust {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #waiting: ((line: string) => void)[] = [];
  #rest = "";
  #failure: string | undefined;

  constructor() {
    const program = process.env["COUNTERSIGN_ANSWER_LINES"];
    if (program === undefined)
      throw new Error("set COUNTERSIGN_ANSWER_LINES to the example answer_lines of the client");
    this.#child = spawn(program, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stdout.setEncoding("utf8").on("data", (chunk: string) => this.#read(chunk));
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => process.stderr.write(text));
    this.#child.on("exit", (code) => {
      this.#failure = JSON.stringify({ failed: `Rust has ended with ${code}` });
      for (const resolve of this.#waiting.splice(0)) resolve(this.#failure);
    });
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#waiting.shift()?.(line);
  }

  /** What Rust answers to an operation. */
  // biome-ignore lint/suspicious/noExplicitAny: the answers are compared member by member
  async ask(op: string, line: object): Promise<any> {
    const answer = new Promise<string>((resolve) => {
      if (this.#failure !== undefined) return resolve(this.#failure);
      this.#waiting.push(resolve);
      this.#child.stdin.write(`${JSON.stringify({ ...line, op })}\n`);
    });
    const read = JSON.parse(await answer) as { failed?: string };
    if (read?.failed !== undefined) throw new Error(`${read.failed}, at ${op} ${JSON.stringify(line).slice(0, 400)}`);
    return read;
  }

  stop(): void {
    this.#child.stdin.end();
  }
}
