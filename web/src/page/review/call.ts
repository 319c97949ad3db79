// What is shown of the call behind a request: what no view shows, who asks, and the proof.

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
  visible,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { type Line, line, type Section, shownCode } from "./line.ts";

/** In front of each line of a longer text of others, so that none of them looks like a line of ours. */
const MARGIN = "│ ";

/** What is in the call and in no view: every line of it must have been on the screen, so it is never folded. */
export function restSection({ rest }: Payload): Section {
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
export function asTheyAre({ call }: Command & Common): Line[] {
  if (call === undefined) return [];
  const names: readonly string[] = SHOWN_AS_THEY_ARE;
  return call.shown.flatMap((claim) => {
    const name = lastName(claim) ?? "";
    const value = resolve(call.message, claim);
    if (!names.includes(name) || value === undefined) return [];
    return [line(`${name === "user" ? texts.factUser : texts.factStdin} ${parts(value)}`)];
  });
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

/** Who asks, and why: what they say, and no proof. */
export function askingLines({ asking }: Payload): Line[] {
  const { agent, project, branch, task, words } = asking;
  const facts = [
    [texts.factAgent, agent],
    [texts.factProject, project],
    [texts.factBranch, branch],
  ] as const;
  const short = facts.flatMap(([name, value]) =>
    value === undefined ? [] : [line(`${name} ${visible(value)}`, "note")],
  );
  const quoted = (title: string, text: string | undefined): Line[] =>
    text === undefined ? [] : [line(title, "note"), ...text.split("\n").map((one) => line(`${MARGIN}${visible(one)}`))];
  return [...short, ...quoted(texts.factTask, task), ...quoted(texts.factWords, words)];
}

/** All else that is bound by the signature: who runs it, when, the environment and the files. */
export function proofSection({ call }: Payload): Section {
  const lines = call === undefined ? [] : proofLines(call);
  return { title: texts.proofTitle, note: texts.proofNote, lines, isFolded: true, need: "never" };
}

function proofLines(call: PayloadCall): Line[] {
  const facts = [
    [texts.proofKind, call.kind],
    [texts.proofMoment, call.moment],
    [texts.proofTool, call.tool],
    [texts.proofFolder, call.folder],
    [texts.proofRepository, call.repository],
    [texts.proofDigest, call.digest],
  ] as const;
  const written = facts.flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${shownCode(value)}`]));
  const aside = call.aside.map(([place, value]) => `${texts.proofAside} ${shownCode(place)} = ${parts(value)}`);
  const environment = call.environment.map((variable) => {
    const value = "value" in variable ? shownCode(variable.value) : texts.proofHidden;
    return `${texts.proofVariable} ${shownCode(variable.name)}=${value}`;
  });
  const files = call.files.map(({ path, role, digest }) => {
    const content = digest === undefined ? texts.proofNoFile : `SHA-256 ${digest}`;
    return `${texts.proofFile} ${shownCode(path)}, ${texts.role[role]}: ${content}`;
  });
  return [...written, ...aside, ...environment, ...files].map((text) => line(text, "note"));
}
