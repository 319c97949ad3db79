// The payload of `command.review`: what will be executed, where, and with what.

import { utf8 } from "../bytes.ts";
import { FormatError } from "../errors.ts";
import { sha256Hex } from "../hash.ts";
import type { JsonValue } from "../json.ts";
import { count, list, Members, nonEmpty, sha256, text, word } from "../members.ts";
import { visibleCode } from "../visible.ts";
import { type Call, variableName } from "./call.ts";

/** A file that decides what a command does. */
export interface CommandFile {
  readonly path: string;
  readonly role: "executable" | "script";
  readonly digest: string;
  readonly size: number;
  readonly content: string | undefined;
}

/** A command before it is executed. */
export interface Command {
  readonly kind: "command";
  /** A program and its arguments without a shell, or a text that a shell interprets. */
  readonly invocation: { readonly argv: readonly string[] } | { readonly shell: string };
  readonly cwd: string;
  /** A variable without a value is a secret that is only known to be set. */
  readonly env: readonly { readonly name: string; readonly value: string | undefined }[];
  readonly stdin: { readonly digest: string; readonly size: number } | undefined;
  readonly files: readonly CommandFile[];
  readonly baseRevision: string | undefined;
}

/** Takes the members after the marker. */
export function readCommand(members: Members): Command {
  return {
    kind: "command",
    invocation: readInvocation(members),
    cwd: members.required("cwd", nonEmpty),
    env: members.optional("env", list(readVariable)) ?? [],
    stdin: members.optional("stdin", readInput),
    files: members.optional("files", list(readFile)) ?? [],
    baseRevision: members.optional("baseRevision", nonEmpty),
  };
}

function readInvocation(members: Members): Command["invocation"] {
  const [argv, shell] = [members.optional("argv", list(text)), members.optional("shell", nonEmpty)];
  if (argv !== undefined && shell !== undefined) throw new FormatError("shell", "must not be beside argv");
  if (shell !== undefined) return { shell };
  if (argv === undefined) throw new FormatError("argv", "is missing");
  if ((argv[0] ?? "") === "") throw new FormatError("argv", "must begin with a program");
  return { argv };
}

function readVariable(value: JsonValue, at: string): Command["env"][number] {
  const members = new Members(value, at);
  const variable = { name: members.required("name", variableName), value: members.optional("value", text) };
  members.close();
  return variable;
}

function readInput(value: JsonValue, at: string): { digest: string; size: number } {
  const members = new Members(value, at);
  const input = { digest: members.required("digest", sha256), size: members.required("size", count) };
  members.close();
  return input;
}

function readFile(value: JsonValue, at: string): CommandFile {
  const members = new Members(value, at);
  const file = {
    path: members.required("path", nonEmpty),
    role: members.required("role", word(["executable", "script"])),
    digest: members.required("digest", sha256),
    size: members.required("size", count),
    content: members.optional("content", text),
  };
  members.close();
  // What is read must be what is executed.
  if (file.content !== undefined) {
    const bytes = utf8(file.content);
    if (sha256Hex(bytes) !== file.digest) throw new FormatError(`${at}.digest`, "is not that of the content");
    if (bytes.length !== file.size) throw new FormatError(`${at}.size`, "is not that of the content");
  }
  return file;
}

/** Throws if the view shows a variable or a file that the call does not have. */
export function checkCommand({ env, files }: Command, call: Call): void {
  for (const { name, value } of env) {
    const bound = call.environment.find((variable) => variable.name === name);
    const isSame = bound !== undefined && (value === undefined || ("value" in bound && bound.value === value));
    if (!isSame) throw new FormatError("env", "is not that of the call");
  }
  // By their content: paths in the view may be relative.
  const isBound = ({ digest }: CommandFile): boolean => call.files.some((file) => file.digest === digest);
  if (!files.every(isBound)) throw new FormatError("files", "are not those of the call");
}

/** The whole command on one line, as a shell would read it. */
export function commandHeadline({ invocation }: Command): string {
  if ("shell" in invocation) return visibleCode(invocation.shell);
  return invocation.argv.map((argument) => visibleCode(quoted(argument))).join(" ");
}

/** A word so that a POSIX shell reads exactly it. */
export function quoted(argument: string): string {
  return /^[a-zA-Z0-9@%+=:,./_\u0080-\u{10ffff}-]+$/u.test(argument)
    ? argument
    : `'${argument.replaceAll("'", "'\\''")}'`;
}
