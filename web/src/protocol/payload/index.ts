// What artifacts say: the payloads that enforcers write and approvers show (docs/payloads.md).
//
// A payload that is not known here, or breaks the rules of its version, is neither refused nor cut: it is `raw`, and is shown
// as the JSON that it is, with the reason.

import type { ArtifactType } from "../artifact.ts";
import { utf8 } from "../bytes.ts";
import { FormatError } from "../errors.ts";
import type { JsonObject } from "../json.ts";
import { count, Members } from "../members.ts";
import { visible } from "../visible.ts";
import { readCheckpoint } from "./checkpoint.ts";
import { checkCall, restOf, type View } from "./claims.ts";
import { commandHeadline, readCommand } from "./command.ts";
import { type Common, NOBODY, readCommon, type Version } from "./common.ts";
import { isDangerous } from "./effect.ts";
import { patchHeadline, readPatch } from "./patch.ts";
import { planHeadline, readPlan } from "./plan.ts";

/** The member `schema` of every payload. */
export const PAYLOAD_SCHEMA = "org.proto.payload";

/** The largest payload that is read, in bytes of JSON. */
export const MAX_PAYLOAD = 2 * 2 ** 20;

/** A payload that is shown as the JSON that it is. Nothing of it counts as examined. */
export interface Raw {
  readonly kind: "raw";
  readonly artifactType: ArtifactType;
  /** The whole text. It is untrusted: show it with `visibleLines`. */
  readonly text: string;
  /** Why it is not shown otherwise. */
  readonly reason: string;
  /** The rule that it breaks; empty if it breaks none. */
  readonly rule: string;
}

/** The payload of an artifact. */
export type Payload = (View | Raw) & Common;

/** Reads the payload of an artifact. Whatever it is, there is something to show. */
export function readPayload(artifactType: ArtifactType, payload: JsonObject): Payload {
  const text = payload.source;
  const raw = (reason: string, rule = ""): Payload => ({ kind: "raw", artifactType, text, reason, rule, ...UNKNOWN });
  const size = utf8(text).length;
  if (size > MAX_PAYLOAD) return raw(`it has ${size} bytes, which is more than a payload may have`);
  const members = new Members(payload);
  if (members.optional("schema", (value) => value) !== PAYLOAD_SCHEMA) return raw("its format is not known here");
  try {
    const version = members.required("version", count);
    if (version !== 1 && version !== 2) return raw(`it has version ${version} of its format, which is not known here`);
    return readKnown(artifactType, members, version);
  } catch (error) {
    if (error instanceof FormatError) return raw("it breaks the rules of its format", error.message);
    throw error;
  }
}

const UNKNOWN: Common = {
  version: undefined,
  state: "notExamined",
  effects: undefined,
  call: undefined,
  asking: NOBODY,
  rest: [],
};

function readKnown(artifactType: ArtifactType, members: Members, version: Version): Payload {
  const view = READERS[artifactType](members);
  const common = readCommon(members, version, view.kind);
  members.close();
  const { call } = common;
  if (call === undefined) return { ...view, ...common, rest: [] };
  checkCall(view, call);
  return { ...view, ...common, rest: restOf(call) };
}

const READERS: Record<ArtifactType, (members: Members) => View> = {
  "command.review": readCommand,
  "patch.review": readPatch,
  "plan.review": (members) => readPlan("plan", members),
  "task.review": (members) => readPlan("task", members),
  "checkpoint.review": readCheckpoint,
};

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

/** Whether one of the effects is dangerous. */
export function isDangerousPayload(payload: Payload): boolean {
  return payload.effects?.some(({ effect }) => isDangerous(effect)) ?? false;
}

/** Whether a person is asked each time, with all care: it is dangerous, or nobody could tell which code runs. */
export function isSerious(payload: Payload): boolean {
  return isDangerousPayload(payload) || payload.state === "notExamined";
}
