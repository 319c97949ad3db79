// Nothing is approved that was not shown: what the views claim to show is compared with the call, and the rest is listed.

import { utf8 } from "../bytes.ts";
import { FormatError } from "../errors.ts";
import { sha256Hex } from "../hash.ts";
import { JsonArray, JsonNumber, JsonObject, type JsonValue } from "../json.ts";
import type { Call } from "./call.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { type Command, checkCommand } from "./command.ts";
import type { Rest } from "./common.ts";
import { diffLines, hunks } from "./hunks.ts";
import type { Patch } from "./patch.ts";
import type { Plan } from "./plan.ts";
import { lastName, leaves, resolve } from "./pointer.ts";

/** What our own code makes of a call, so that people can read it. */
export type View = Command | Patch | Plan | Checkpoint;

/** Whether a view shows a value of the message. */
type Shows = (value: JsonValue) => boolean;

/** Throws if a view claims to show what it does not, or does not agree with its call. */
export function checkCall(view: View, call: Call): void {
  if (view.kind === "command") checkCommand(view, call);
  const claimable = claimableNames(view, call);
  const claims = new Set(call.shown.map(({ source }) => source));
  if (claims.size < call.shown.length) throw new FormatError("call.shown", "has a pointer twice");
  for (const [index, claim] of call.shown.entries()) {
    const at = `call.shown[${index}]`;
    if (around(claim.source).some((outer) => claims.has(outer))) throw new FormatError(at, "is inside of another");
    const value = resolve(call.message, claim);
    if (value === undefined) throw new FormatError(at, "is not in the message");
    const shows = claimable.get(lastName(claim) ?? "");
    if (shows?.(value) !== true) throw new FormatError(at, "is not what is shown");
  }
}

/** What no view shows of the message, in its order. */
export function restOf({ message, shown }: Call): Rest[] {
  // An empty message has no members that could be shown.
  const all = message.members.size === 0 ? [] : leaves(message);
  const claims = new Set(shown.map(({ source }) => source));
  const isShown = (place: string): boolean => [place, ...around(place)].some((outer) => claims.has(outer));
  return all.filter(([place]) => !isShown(place)).map(([place, value]) => [place, jsonText(value)]);
}

/** The pointers of everything around what a pointer leads to, but the message. */
function around(place: string): string[] {
  const tokens = place.split("/");
  return tokens.slice(2).map((_, at) => tokens.slice(0, at + 2).join("/"));
}

/** A leaf as JSON text. A number keeps its digits. */
function jsonText(value: JsonValue): string {
  if (value instanceof JsonNumber) return value.literal;
  if (value instanceof JsonObject) return "{}";
  return value instanceof JsonArray ? "[]" : JSON.stringify(value);
}

/** The names that a view may claim, with what must be shown of each. */
function claimableNames(view: View, call: Call): Map<string, Shows> {
  const names = new Map<string, Shows>();
  const add = (shows: Shows, ...added: string[]): void => {
    for (const name of added) names.set(name, shows);
  };
  const oneOf =
    (...texts: readonly string[]): Shows =>
    (value) =>
      typeof value === "string" && texts.includes(value);
  const partOf =
    (...texts: readonly string[]): Shows =>
    (value) =>
      typeof value === "string" && texts.some((text) => text.includes(value));
  add(oneOf(call.folder, ...(view.kind === "command" ? [view.cwd] : [])), "cwd", "workdir", "directory");
  add(oneOf(call.tool), "tool_name", "toolName", "tool");
  add(oneOf(call.moment), "hook_event_name", "hookName");
  if (view.kind === "command") {
    const { invocation } = view;
    if ("shell" in invocation) add(oneOf(invocation.shell), "command", "cmd");
    else add((value) => isList(value, invocation.argv), "argv");
    // Whoever shows the command of `exec` shows these as they are.
    if ("argv" in invocation && call.kind === "exec") add(() => true, ...SHOWN_AS_THEY_ARE);
  } else if (view.kind === "patch") {
    const paths = pathsOf(view, call);
    add(oneOf(...paths), "file_path", "filePath", "path", "absolute_path");
    const [hasText, hasPatch] = [textsOf(view), patchesOf(view, paths)];
    add((value) => typeof value === "string" && hasText(value), ...TEXT_NAMES);
    add((value) => typeof value === "string" && hasPatch(value), "command", "input", "patch", "patchText");
  } else if (view.kind === "checkpoint") {
    add(partOf(view.summary, ...view.changes), "question", "label", "message", "prompt");
  } else {
    add(partOf(view.text), "plan", "summary", "url", "query");
  }
  return names;
}

/** Members of the message of `exec` that are shown as they are, whatever they are. */
export const SHOWN_AS_THEY_ARE = ["stdin", "user"] as const;

const TEXT_NAMES = [
  "content",
  "contents",
  "file_text",
  "old_string",
  "new_string",
  "old_str",
  "new_str",
  "oldString",
  "newString",
] as const;

function isList(value: JsonValue, texts: readonly string[]): boolean {
  if (!(value instanceof JsonArray) || value.items.length !== texts.length) return false;
  return value.items.every((item, at) => item === texts[at]);
}

function pathsOf({ files }: Patch, call: Call): string[] {
  const shown = files.flatMap(({ path, previousPath }) => (previousPath === undefined ? [path] : [path, previousPath]));
  return [...shown, ...call.files.map(({ path }) => path)];
}

/** Whether the diff shows a text: in one hunk, before or after the change; or as the whole text of a file. */
function textsOf({ diff, files }: Patch): (text: string) => boolean {
  const all = hunks(diff);
  return (text) => {
    if (text === "" || all.some(({ before, after }) => before.includes(text) || after.includes(text))) return true;
    const digest = sha256Hex(utf8(text));
    return files.some(({ path, resultDigest }) => {
      if (resultDigest !== digest) return false;
      const own = all.filter((hunk) => hunk.path === path);
      // A diff that names the file in another way must have nothing that the text lacks.
      const compared = own.length > 0 ? own : all;
      return compared.length > 0 && compared.every(({ after }) => text.includes(after));
    });
  };
}

/** Whether a text in the format of `apply_patch` says nothing that the diff does not. */
function patchesOf({ diff }: Patch, paths: readonly string[]): (text: string) => boolean {
  const lines = diffLines(diff);
  const linesOf = (changed: "added" | "removed"): Set<string> =>
    new Set(lines.filter(({ kind }) => kind === "kept" || kind === changed).map((line) => line.text));
  const [added, removed] = [linesOf("added"), linesOf("removed")];
  const isKnown = (line: string): boolean => {
    if (line.startsWith("+")) return added.has(line.slice(1));
    if (line.startsWith("-")) return removed.has(line.slice(1));
    const file = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.*)$/s.exec(line)?.[1];
    // The paths in a patch may begin further inside.
    if (file !== undefined) return paths.some((path) => path === file || path.endsWith(`/${file}`));
    return line === "" || /^(?: |@@)/.test(line) || PATCH_MARKS.includes(line);
  };
  return (text) => {
    const all = text.split("\n");
    return all.includes("*** Begin Patch") && all.every(isKnown);
  };
}

const PATCH_MARKS: readonly string[] = ["*** Begin Patch", "*** End Patch", "*** End of File"];
