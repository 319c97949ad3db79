// What artifacts say: the payloads that enforcers write and approvers show (docs/payloads.md).
//
// A payload that is not known here, or breaks the rules of its version, is neither refused nor cut: it is `raw`, and is shown
// as the JSON that it is, with the reason.

import type { ArtifactType } from "../artifact.ts";
import { utf8 } from "../bytes.ts";
import { FormatError } from "../errors.ts";
import type { JsonObject, JsonValue } from "../json.ts";
import { count, id, list, Members, nonEmpty, sha256 } from "../members.ts";
import { visible } from "../visible.ts";
import { type Command, commandHeadline, readCommand } from "./command.ts";
import { type Effect, isDangerous, readEffect } from "./effect.ts";
import { type Patch, patchHeadline, readPatch } from "./patch.ts";

/** The member `schema` of every payload. */
export const PAYLOAD_SCHEMA = "org.proto.payload";

/** The largest payload that is read, in bytes of JSON. */
export const MAX_PAYLOAD = 2 * 2 ** 20;

/** A plan or a task before it begins. */
export interface Plan {
  readonly kind: "plan" | "task";
  /** All of it, in Markdown. */
  readonly text: string;
  readonly steps: readonly string[];
  readonly effects: readonly Effect[] | undefined;
}

/** A point at which an agent waits. */
export interface Checkpoint {
  readonly kind: "checkpoint";
  readonly summary: string;
  readonly changes: readonly string[];
  /** Earlier exchanges; the hash says which artifact is meant. */
  readonly earlier: readonly { readonly requestId: string; readonly artifactHash: string }[];
  readonly effects: readonly Effect[] | undefined;
}

/** A payload that is shown as the JSON that it is. Nothing of it counts as examined. */
export interface Raw {
  readonly kind: "raw";
  readonly artifactType: ArtifactType;
  /** The whole text. It is untrusted: show it with `visibleLines`. */
  readonly text: string;
  /** Why it is not shown otherwise. */
  readonly reason: string;
  readonly effects: undefined;
}

/** The payload of an artifact. */
export type Payload = Command | Patch | Plan | Checkpoint | Raw;

/** Reads the payload of an artifact. Whatever it is, there is something to show. */
export function readPayload(artifactType: ArtifactType, payload: JsonObject): Payload {
  const text = payload.source;
  const raw = (reason: string): Raw => ({ kind: "raw", artifactType, text, reason, effects: undefined });
  const size = utf8(text).length;
  if (size > MAX_PAYLOAD) return raw(`it has ${size} bytes, which is more than a payload may have`);
  const members = new Members(payload);
  if (members.optional("schema", (value) => value) !== PAYLOAD_SCHEMA) return raw("its format is not known here");
  try {
    const version = members.required("version", count);
    if (version !== 1) return raw(`it has version ${version} of its format, which is not known here`);
    const read = READERS[artifactType](members);
    members.close();
    return read;
  } catch (error) {
    if (error instanceof FormatError) return raw("it breaks the rules of its format");
    throw error;
  }
}

const READERS: Record<ArtifactType, (members: Members) => Payload> = {
  "command.review": readCommand,
  "patch.review": readPatch,
  "plan.review": (members) => readPlan("plan", members),
  "task.review": (members) => readPlan("task", members),
  "checkpoint.review": readCheckpoint,
};

function readPlan(kind: Plan["kind"], members: Members): Plan {
  return {
    kind,
    text: members.required("text", nonEmpty),
    steps: members.optional("steps", list(nonEmpty)) ?? [],
    effects: members.optional("effects", list(readEffect)),
  };
}

function readCheckpoint(members: Members): Checkpoint {
  return {
    kind: "checkpoint",
    summary: members.required("summary", nonEmpty),
    changes: members.optional("changes", list(nonEmpty)) ?? [],
    earlier: members.optional("earlier", list(readEarlier)) ?? [],
    effects: members.optional("effects", list(readEffect)),
  };
}

function readEarlier(value: JsonValue, at: string): Checkpoint["earlier"][number] {
  const members = new Members(value, at);
  const earlier = {
    requestId: members.required("requestId", id),
    artifactHash: members.required("artifactHash", sha256),
  };
  members.close();
  return earlier;
}

/** The first line that a person reads: what will happen. It is never cut and has nothing invisible. */
export function headline(payload: Payload): string {
  switch (payload.kind) {
    case "command":
      return commandHeadline(payload);
    case "patch":
      return patchHeadline(payload);
    case "plan":
    case "task":
      return planHeadline(payload);
    case "checkpoint":
      return visible(payload.summary);
    case "raw":
      return `${payload.artifactType}, ${utf8(payload.text).length} bytes of JSON: ${payload.reason}`;
  }
}

/** The first heading, else the first step, else the first line with text. */
function planHeadline({ text, steps }: Plan): string {
  const lines = text.split("\n").map((line) => line.replace(/\r$/, ""));
  const heading = lines.map(headingOf).find((found) => found !== undefined);
  return visible(heading ?? steps[0] ?? lines.map(trim).find((line) => line !== "") ?? "");
}

/** The text of a Markdown heading that begins with number signs. */
function headingOf(line: string): string | undefined {
  const [, rest] = /^#{1,6} (.*)$/s.exec(line) ?? [];
  const text = rest === undefined ? "" : trim(trim(rest).replace(/#+$/, ""));
  return text === "" ? undefined : text;
}

function trim(text: string): string {
  return text.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, "");
}

/** Whether a person is asked each time, whatever was granted: one of the effects is dangerous. */
export function isDangerousPayload(payload: Payload): boolean {
  return payload.effects?.some(({ effect }) => isDangerous(effect)) ?? false;
}
