// What is shown of the call behind a request: what no view shows, and the proof.

import {
  type Command,
  type Common,
  JsonArray,
  JsonObject,
  type JsonValue,
  lastName,
  leaves,
  type Payload,
  type PayloadCall,
  type Rest,
  resolve,
  SHOWN_AS_THEY_ARE,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { fact, type Line, line, type Section, shownCode } from "./line.ts";

/** In front of each line of a longer text of others, so that none of them looks like a line of ours. */
const MARGIN = "│ ";

/** What is in the call and in no view: every line of it must have been on the screen, so it is never folded. */
export function restSection(rest: Payload["rest"]): Section {
  return {
    title: texts.restTitle,
    note: texts.restNote,
    lines: rest.flatMap(restLines),
    isFolded: false,
    need: "always",
  };
}

/** A member with its pointer. A text of several lines has each of them. */
function restLines([place, json]: Rest): Line[] {
  const value: unknown = JSON.parse(json);
  if (typeof value !== "string" || !value.includes("\n")) return [line(`${shownCode(place)} = ${shownCode(json)}`)];
  const lines = value.split("\n").map((text) => line(`${MARGIN}${shownCode(text)}`, "code"));
  return [line(`${shownCode(place)} =`), ...lines];
}

/** The members of the message of `exec` that its view claims, and that are shown as they are. */
function asTheyAre(call: PayloadCall | undefined): { name: string; text: string }[] {
  if (call === undefined) return [];
  const names: readonly string[] = SHOWN_AS_THEY_ARE;
  return call.shown.flatMap((claim) => {
    const name = lastName(claim) ?? "";
    const value = resolve(call.message, claim);
    return !names.includes(name) || value === undefined ? [] : [{ name, text: parts(value) }];
  });
}

/** What is read from the standard input. As whom it runs is in the proof. */
export function inputLines({ call }: Command & Common): Line[] {
  return asTheyAre(call).flatMap(({ name, text }) => (name === "user" ? [] : [line(`${texts.factStdin} ${text}`)]));
}

/** A value on one line, with every leaf of it. */
function parts(value: JsonValue): string {
  const isLeaf = !(value instanceof JsonObject || value instanceof JsonArray);
  if (isLeaf) return leaf(value);
  return leaves(value)
    .map(([place, member]) => `${shownCode(place.slice(1))}=${leaf(member)}`)
    .join(", ");
}

function leaf(value: JsonValue): string {
  if (value instanceof JsonObject) return "{}";
  if (value instanceof JsonArray) return "[]";
  if (typeof value === "string" || value === null || typeof value === "boolean")
    return shownCode(JSON.stringify(value));
  return value.literal;
}

/** All else of a call that is bound by the signature: who runs it, when, the environment and the files. */
export function callFacts(call: PayloadCall): Line[] {
  const facts = [
    [texts.proofKind, call.kind],
    [texts.proofMoment, call.moment],
    [texts.proofTool, call.tool],
    [texts.proofFolder, call.folder],
    [texts.proofRepository, call.repository],
    [texts.proofDigest, call.digest],
  ] as const;
  const written = facts.flatMap(([name, value]) => (value === undefined ? [] : [fact(name, shownCode(value))]));
  const aside = call.aside.map(([place, value]) => fact(texts.proofAside, `${shownCode(place)} = ${parts(value)}`));
  const environment = call.environment.map((variable) => {
    const value = "value" in variable ? shownCode(variable.value) : texts.proofHidden;
    return fact(texts.proofVariable, `${shownCode(variable.name)}=${value}`);
  });
  const files = call.files.map(({ path, role, digest }) => {
    const content = digest === undefined ? texts.proofNoFile : `SHA-256 ${digest}`;
    return fact(texts.proofFile, `${shownCode(path)}, ${texts.role[role]}: ${content}`);
  });
  const user = asTheyAre(call).flatMap(({ name, text }) => (name === "user" ? [fact(texts.factUser, text)] : []));
  return [...written, ...user, ...aside, ...environment, ...files];
}
