// A unified diff, file by file. Every line of the diff is in exactly one file, in its order (as in the terminal's inbox).

import { type Line, type LineKind, shownCode } from "./line.ts";

/** One file of a diff. */
export interface DiffFile {
  name: string;
  lines: Line[];
  added: number;
  removed: number;
  isBinary: boolean;
}

/** The files of a diff. A hunk says how long it is, so a removed line that looks like a header is what it is. */
export function diffFiles(diff: string): DiffFile[] {
  const files: DiffFile[] = [];
  const lines = diff.replace(/\n$/, "").split("\n");
  let [before, after, isInHeader] = [0, 0, false];
  let [beforeNumber, afterNumber] = [0, 0];
  lines.forEach((line, at) => {
    const isContent = before > 0 || after > 0;
    const next = lines[at + 1] ?? "";
    const isPlainHeader = !isInHeader && line.startsWith("--- ") && next.startsWith("+++ ");
    let file = files.at(-1);
    if (file === undefined || (!isContent && (line.startsWith("diff ") || isPlainHeader))) {
      file = { name: nameOf(line), lines: [], added: 0, removed: 0, isBinary: false };
      files.push(file);
      isInHeader = line.startsWith("diff ");
    }
    let kind: LineKind = "note";
    if (isContent) {
      kind = contentKind(line);
      if (kind === "added") file.added += 1;
      if (kind === "removed") file.removed += 1;
      const numbers = [
        kind === "added" ? undefined : beforeNumber,
        kind === "removed" ? undefined : afterNumber,
      ] as const;
      if (kind === "added" || kind === "text") [after, afterNumber] = [Math.max(0, after - 1), afterNumber + 1];
      if (kind === "removed" || kind === "text") [before, beforeNumber] = [Math.max(0, before - 1), beforeNumber + 1];
      file.lines.push(kind === "note" ? { kind, text: shownCode(line) } : { kind, text: shownCode(line), numbers });
      return;
    }
    readHeader(file, line);
    const hunk = hunkOf(line);
    if (hunk !== undefined) {
      [kind, before, after, isInHeader] = ["hunk", hunk.before, hunk.after, false];
      [beforeNumber, afterNumber] = [hunk.beforeStart, hunk.afterStart];
    }
    file.lines.push({ kind, text: shownCode(line) });
  });
  return files.map((file) => ({ ...file, lines: paired(withKnown(file)) }));
}

/** The lines of a file; those that only repeat its name are known from its heading. */
function withKnown({ name, lines }: DiffFile): Line[] {
  const known = new Set(
    [`--- a/${name}`, `+++ b/${name}`, "--- /dev/null", "+++ /dev/null", `diff --git a/${name} b/${name}`].map(
      shownCode,
    ),
  );
  return lines.map((line) => (line.kind === "note" && known.has(line.text) ? { ...line, kind: "known" } : line));
}

/** Gives as many added lines as were removed just before them the line that they replace, and the other way round. */
export function paired(lines: readonly Line[]): Line[] {
  const result = [...lines];
  for (let at = 0; at < lines.length; ) {
    const removed = run(lines, at, "removed");
    const added = run(lines, at + removed, "added");
    if (removed > 0 && removed === added) {
      for (let step = 0; step < removed; step += 1) {
        const [first, second] = [lines[at + step], lines[at + removed + step]];
        if (first === undefined || second === undefined) continue;
        result[at + step] = { ...first, pair: second.text.slice(1) };
        result[at + removed + step] = { ...second, pair: first.text.slice(1) };
      }
    }
    at += Math.max(1, removed + added);
  }
  return result;
}

/** How many lines of a kind follow each other. */
function run(lines: readonly Line[], from: number, kind: LineKind): number {
  let end = from;
  while (lines[end]?.kind === kind) end += 1;
  return end - from;
}

function contentKind(line: string): LineKind {
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  return line.startsWith("\\") ? "note" : "text";
}

function readHeader(file: DiffFile, line: string): void {
  if (line.startsWith("+++ ") && !line.startsWith("+++ /dev/null")) file.name = line.slice(4).replace(/^b\//, "");
  if (line.startsWith("Binary files ") || line.startsWith("GIT binary patch")) file.isBinary = true;
}

function nameOf(line: string): string {
  const git = /^diff --git a\/(.*?) b\//.exec(line)?.[1];
  const plain = line.startsWith("--- ") ? line.slice(4).replace(/^a\//, "") : undefined;
  return git ?? plain ?? "the beginning of the diff";
}

/** A hunk by its header, `@@ -<start>[,<length>] +<start>[,<length>] @@`. */
function hunkOf(line: string): Record<"before" | "after" | "beforeStart" | "afterStart", number> | undefined {
  const header = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
  if (header === null) return undefined;
  const number = (text: string | undefined): number => Math.min(Number(text ?? "1"), Number.MAX_SAFE_INTEGER);
  return {
    beforeStart: number(header[1]),
    before: number(header[2]),
    afterStart: number(header[3]),
    after: number(header[4]),
  };
}
