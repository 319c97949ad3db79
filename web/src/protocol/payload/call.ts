// The member `call`: all of what was asked for, from which the views are made.

import { FormatError } from "../errors.ts";
import type { JsonObject, JsonValue } from "../json.ts";
import { list, Members, nonEmpty, object, type Read, sha256, text, word } from "../members.ts";
import { type Pointer, pointer } from "./pointer.ts";

/** What a file decides. */
export const FILE_ROLES = ["executable", "interpreter", "script", "operand", "with", "startup", "before"] as const;

/** What a file decides. */
export type FileRole = (typeof FILE_ROLES)[number];

/** A variable of the environment: its value, or what only the enforcer can compare with it. */
export type CallVariable = { readonly name: string } & ({ readonly value: string } | { readonly mac: string });

/** A file that decides what happens. */
export interface CallFile {
  readonly path: string;
  readonly role: FileRole;
  /** `undefined` if there is no file. */
  readonly digest: string | undefined;
}

/** All of what was asked for. */
export interface Call {
  /** Who runs it: `exec`, or `hook.` and the host's word. */
  readonly kind: string;
  /** When it was asked: the host's name of the event. */
  readonly moment: string;
  /** The tool as the host names it, or the program. */
  readonly tool: string;
  readonly folder: string;
  /** The root of the repository; `undefined` outside of one. */
  readonly repository: string | undefined;
  /** What the host has sent, without what is in `aside`. */
  readonly message: JsonObject;
  /** Members of the message that change from call to call, or say nothing about it, by their pointers. */
  readonly aside: readonly (readonly [string, JsonValue])[];
  /** SHA-256 of the host's message as it came. */
  readonly digest: string | undefined;
  readonly environment: readonly CallVariable[];
  readonly files: readonly CallFile[];
  /** What the views claim to show. */
  readonly shown: readonly Pointer[];
}

/** Reads the call. */
export const readCall: Read<Call> = (value, at) => {
  const members = new Members(value, at);
  const call = {
    kind: members.required("kind", nonEmpty),
    moment: members.required("moment", nonEmpty),
    tool: members.required("tool", nonEmpty),
    folder: members.required("folder", nonEmpty),
    repository: members.optional("repository", nonEmpty),
    message: members.required("message", object),
    aside: members.optional("aside", readAside) ?? [],
    digest: members.optional("digest", sha256),
    environment: members.optional("environment", readEnvironment) ?? [],
    files: members.optional("files", list(readFile)) ?? [],
    shown: members.optional("shown", list(pointer)) ?? [],
  };
  members.close();
  return call;
};

const readAside: Read<[string, JsonValue][]> = (value, at) =>
  [...object(value, at).members].map(([place, member]) => [pointer(place, at).source, member]);

const readEnvironment: Read<CallVariable[]> = (value, at) => {
  const variables = list(readVariable)(value, at);
  for (const [index, { name }] of variables.entries()) {
    const before = variables[index - 1]?.name;
    // One order, so that a variable is there once and is found.
    if (before !== undefined && byCodePoints(before, name) >= 0) throw new FormatError(at, "is not sorted by name");
  }
  return variables;
};

function readVariable(value: JsonValue, at: string): CallVariable {
  const members = new Members(value, at);
  const name = members.required("name", variableName);
  const [plain, mac] = [members.optional("value", text), members.optional("mac", sha256)];
  members.close();
  if (plain !== undefined && mac === undefined) return { name, value: plain };
  if (mac !== undefined && plain === undefined) return { name, mac };
  throw new FormatError(at, "must have either value or mac");
}

/** The name of a variable. */
export const variableName: Read<string> = (value, at) => {
  const name = nonEmpty(value, at);
  if (!name.includes("=")) return name;
  throw new FormatError(at, "must not have an equals sign");
};

/** The order of the UTF-8 of two texts. That of JavaScript differs for characters above U+FFFF. */
function byCodePoints(one: string, other: string): number {
  const [first, second] = [[...one], [...other]];
  const at = first.findIndex((character, index) => character !== second[index]);
  if (at < 0) return first.length - second.length;
  return (first[at]?.codePointAt(0) ?? 0) - (second[at]?.codePointAt(0) ?? -1);
}

function readFile(value: JsonValue, at: string): CallFile {
  const members = new Members(value, at);
  const file = {
    path: members.required("path", nonEmpty),
    role: members.required("role", word(FILE_ROLES)),
    digest: members.optional("digest", sha256),
  };
  members.close();
  return file;
}
