// A unified diff as lines: what stays, what is added, what is removed.

/** What a line of a diff is. `header` is everything outside of hunks. */
export interface DiffLine {
  readonly kind: "header" | "start" | "kept" | "added" | "removed" | "marker";
  /** The line; in a hunk without its sign. */
  readonly text: string;
}

/**
 * The lines of a diff. A hunk says how long it is, so a removed line that looks like a header of a file is what it is. An
 * `\ No newline at end of file` is a marker, also behind the last line of a hunk.
 */
export function diffLines(diff: string): DiffLine[] {
  let [before, after] = [0, 0];
  let isAfterLine = false;
  return diff.split("\n").map((line): DiffLine => {
    if (line.startsWith("\\") && (isAfterLine || before > 0 || after > 0)) return { kind: "marker", text: line };
    isAfterLine = before > 0 || after > 0;
    if (!isAfterLine) {
      [before, after] = hunkLengths(line);
      return { kind: before > 0 || after > 0 ? "start" : "header", text: line };
    }
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "kept";
    if (kind !== "removed") after = Math.max(0, after - 1);
    if (kind !== "added") before = Math.max(0, before - 1);
    return { kind, text: line.slice(1) };
  });
}

/** Lines that the hunks of a diff add and remove. */
export function countLines(diff: string): { added: number; removed: number } {
  const lines = diffLines(diff);
  const count = (kind: DiffLine["kind"]): number => lines.filter((line) => line.kind === kind).length;
  return { added: count("added"), removed: count("removed") };
}

/** One hunk: the text of its lines on both sides. */
export interface Hunk {
  /** The name of the file afterwards, as the diff has it, without `b/`. */
  readonly path: string;
  before: string;
  after: string;
}

/** The hunks of a diff. */
export function hunks(diff: string): Hunk[] {
  const found: Hunk[] = [];
  let path = "";
  let last: DiffLine["kind"] = "header";
  for (const { kind, text } of diffLines(diff)) {
    const hunk = found.at(-1);
    if (kind === "header" && text.startsWith("+++ ")) path = text.slice(4).replace(/^b\//, "");
    else if (kind === "start") found.push({ path, before: "", after: "" });
    else if (hunk !== undefined && kind === "marker") {
      // The line before has no line break.
      if (last === "kept" || last === "removed") hunk.before = hunk.before.slice(0, -1);
      if (last === "kept" || last === "added") hunk.after = hunk.after.slice(0, -1);
    } else if (hunk !== undefined && kind !== "header") {
      if (kind !== "added") hunk.before += `${text}\n`;
      if (kind !== "removed") hunk.after += `${text}\n`;
    }
    last = kind;
  }
  return found;
}

/** The lengths of a hunk by its header, `@@ -<start>[,<length>] +<start>[,<length>] @@`; zeros if it is none. */
function hunkLengths(line: string): [number, number] {
  const header = /^@@ -(.*?) \+(.*?) @@/.exec(line);
  if (header === null) return [0, 0];
  const lengths = [header[1] ?? "", header[2] ?? ""].map((range) => {
    const comma = range.indexOf(",");
    return comma < 0 ? "1" : range.slice(comma + 1);
  });
  const isWhole = lengths.every((length) => /^\+?\d+$/.test(length) && Number(length) <= Number.MAX_SAFE_INTEGER);
  return isWhole ? [Number(lengths[0]), Number(lengths[1])] : [0, 0];
}
