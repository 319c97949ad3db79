// What every payload has beside its own members: what is known of it, the call, and who asks.

import { FormatError } from "../errors.ts";
import { list, type Members, nonEmpty, word } from "../members.ts";
import { type Call, readCall } from "./call.ts";
import { type Effect, readEffect } from "./effect.ts";

/** The versions of the format that are read. */
export type Version = 1 | 2;

/**
 * What is known of a command or a task. `examined`: what it does. `opaque`: which code runs, and not what it does.
 * `notExamined`: not even that.
 */
export type State = "examined" | "opaque" | "notExamined";

/** Who asks, and why. It is what they say, and no proof. */
export interface Asking {
  /** What people call the agent. */
  readonly agent: string | undefined;
  readonly project: string | undefined;
  readonly branch: string | undefined;
  /** What its person asked for. */
  readonly task: string | undefined;
  /** What the agent says about it. */
  readonly words: string | undefined;
}

/** A member of the message that no view shows: its pointer, and its value as JSON text. */
export type Rest = readonly [pointer: string, json: string];

/** What every payload has. */
export interface Common {
  /** `undefined` for what is shown as JSON. */
  readonly version: Version | undefined;
  /** `undefined` for what runs nothing: all but commands, and tasks with a call. */
  readonly state: State | undefined;
  /** `undefined` if it was not examined. Of what was examined in part only, those of the parts that are certain. */
  readonly effects: readonly Effect[] | undefined;
  /** All of what was asked for; `undefined` in version 1, and for what does not run. */
  readonly call: Call | undefined;
  readonly asking: Asking;
  /** What no view shows of the call. A person must have seen all of it before it is approved. */
  readonly rest: readonly Rest[];
}

const STATES = ["examined", "opaque", "notExamined"] as const;
export const NOBODY: Asking = {
  agent: undefined,
  project: undefined,
  branch: undefined,
  task: undefined,
  words: undefined,
};

/** Takes the members that every payload has. */
export function readCommon(members: Members, version: Version, kind: string): Omit<Common, "rest"> {
  const effects = members.optional("effects", list(readEffect));
  if (version === 1) {
    const derived = effects === undefined ? "notExamined" : "examined";
    const state = kind === "command" || kind === "task" ? derived : undefined;
    return { version, state, effects, call: undefined, asking: NOBODY };
  }
  const call = members.optional("call", readCall);
  const runs = kind === "command" || (kind === "task" && call !== undefined);
  const state = runs ? members.required("state", word(STATES)) : undefined;
  if (state === "notExamined" && effects?.length === 0)
    throw new FormatError("effects", "must not be empty: it was not examined");
  if (state !== undefined && state !== "notExamined" && effects === undefined)
    throw new FormatError("effects", "must be there unless it is not examined");
  const asking = {
    agent: members.optional("agent", nonEmpty),
    project: members.optional("project", nonEmpty),
    branch: members.optional("branch", nonEmpty),
    task: members.optional("task", nonEmpty),
    words: members.optional("words", nonEmpty),
  };
  return { version, state, effects, call, asking };
}
