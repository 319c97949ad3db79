// A unified diff, file by file. Every line of the diff is in exactly one file, in its order (as in the terminal's inbox).

import { type Line, type LineKind, shownCode } from "./line.ts";

/** One file of a diff. */
export interface DiffFile {
  name: string;
  readonly lines: Line[];
  added: number;
  removed: number;
  isBinary: boolean;
}

/** The files of a diff. A hunk says how long it is, so a removed line that looks like a header is what it is. */
export function diffFiles(diff: string): DiffFile[] {
  const files: DiffFile[] = [];
  const lines = diff.replace(/\n$/, "").split("\n");
  let [before, after, isInHeader] = [0, 0, false];
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
      if (kind === "added" || kind === "text") after = Math.max(0, after - 1);
      if (kind === "removed" || kind === "text") before = Math.max(0, before - 1);
    } else {
      readHeader(file, line);
      const lengths = hunkLengths(line);
      if (lengths !== undefined) [kind, before, after, isInHeader] = ["hunk", lengths[0], lengths[1], false];
    }
    file.lines.push({ kind, text: shownCode(line) });
  });
  return files;
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

/** The lengths of a hunk by its header, `@@ -<start>[,<length>] +<start>[,<length>] @@`. */
function hunkLengths(line: string): [number, number] | undefined {
  const header = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
  if (header === null) return undefined;
  const length = (text: string | undefined): number => Math.min(Number(text ?? "1"), Number.MAX_SAFE_INTEGER);
  return [length(header[2]), length(header[4])];
}
