// The payload of `patch.review`: a unified diff, and what it does to each file.

import { FormatError } from "../errors.ts";
import type { JsonValue } from "../json.ts";
import { count, list, Members, nonEmpty, sha256, word } from "../members.ts";
import { visibleCode } from "../visible.ts";
import { countLines } from "./hunks.ts";

/** What a patch does to one file. */
export interface PatchFile {
  readonly path: string;
  readonly status: "added" | "modified" | "deleted" | "renamed" | "copied";
  readonly previousPath: string | undefined;
  readonly added: number;
  readonly removed: number;
  readonly baseDigest: string | undefined;
  readonly resultDigest: string | undefined;
}

/** A change of files before it is applied. */
export interface Patch {
  readonly kind: "patch";
  readonly diff: string;
  readonly files: readonly PatchFile[];
}

/** Takes the members after the marker. */
export function readPatch(members: Members): Patch {
  const patch: Patch = {
    kind: "patch",
    diff: members.required("diff", nonEmpty),
    files: members.required("files", list(readFile)),
  };
  if (patch.files.length === 0) throw new FormatError("files", "must not be empty");
  const [listed, counted] = [patchLines(patch), countLines(patch.diff)];
  // The list is read first, and must not play down what follows.
  if (listed.added !== counted.added || listed.removed !== counted.removed) {
    throw new FormatError("files", "have other numbers of lines than the diff");
  }
  return patch;
}

function readFile(value: JsonValue, at: string): PatchFile {
  const members = new Members(value, at);
  const file = {
    path: members.required("path", nonEmpty),
    status: members.required("status", word(["added", "modified", "deleted", "renamed", "copied"])),
    previousPath: members.optional("previousPath", nonEmpty),
    added: members.required("added", count),
    removed: members.required("removed", count),
    baseDigest: members.optional("baseDigest", sha256),
    resultDigest: members.optional("resultDigest", sha256),
  };
  members.close();
  const hasMoved = file.status === "renamed" || file.status === "copied";
  if ((file.baseDigest === undefined) !== (file.status === "added")) {
    throw new FormatError(`${at}.baseDigest`, "must be there unless the file is added");
  }
  if ((file.resultDigest === undefined) !== (file.status === "deleted")) {
    throw new FormatError(`${at}.resultDigest`, "must be there unless the file is deleted");
  }
  if ((file.previousPath !== undefined) !== hasMoved) {
    throw new FormatError(`${at}.previousPath`, "must be there if the file is renamed or copied");
  }
  return file;
}

/** Lines that are added and removed in all files. */
export function patchLines({ files }: Pick<Patch, "files">): { added: number; removed: number } {
  const sum = (part: "added" | "removed"): number => files.reduce((total, file) => total + file[part], 0);
  return { added: sum("added"), removed: sum("removed") };
}

/** How much changes, and where. */
export function patchHeadline(patch: Patch): string {
  const { added, removed } = patchLines(patch);
  const [only, ...others] = patch.files;
  const place = only !== undefined && others.length === 0 ? only.path : commonFolder(patch.files);
  const files = patch.files.length === 1 ? "1 file" : `${patch.files.length} files`;
  return `${files}, +${added} −${removed}${place === "" ? "" : ` in ${visibleCode(place)}`}`;
}

/** The folder that all files are in; empty if there is none but the root. */
export function commonFolder(files: readonly PatchFile[]): string {
  const folders = files.map(({ path }) => path.split("/").slice(0, -1));
  const [first = [], ...rest] = folders;
  const end = first.findIndex((part, at) => rest.some((other) => other[at] !== part));
  return first.slice(0, end < 0 ? first.length : end).join("/");
}
