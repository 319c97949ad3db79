// Which words of a changed line differ from the line that it replaces.

/** A piece of a line, and whether the other line does not have it. */
export interface Piece {
  readonly text: string;
  readonly isChanged: boolean;
}

/** Longer lines are compared from their ends only. */
const MAX_WORDS = 80;

/** Words, runs of spaces, and single signs; what was written out stays whole. */
const words = (text: string): string[] => text.match(/⟨[^⟩]*⟩|[\p{L}\p{N}_]+|\s+|./gu) ?? [];

/** The pieces of a line. If nearly nothing is common, nothing is marked: the whole line is another one. */
export function changedPieces(text: string, other: string): Piece[] {
  const [mine, theirs] = [words(text), words(other)];
  const kept = mine.length > MAX_WORDS || theirs.length > MAX_WORDS ? ends(mine, theirs) : common(mine, theirs);
  const shared = mine.filter((word, at) => kept[at] === true && word.trim() !== "").join("").length;
  if (shared * 4 < text.trim().length) return [{ text, isChanged: false }];
  const pieces: { text: string; isChanged: boolean }[] = [];
  mine.forEach((word, at) => {
    const isChanged = kept[at] !== true;
    const last = pieces.at(-1);
    if (last?.isChanged === isChanged) last.text += word;
    else pieces.push({ text: word, isChanged });
  });
  return pieces;
}

/** Which words are in the same place, counted from the start and from the end. */
function ends(mine: readonly string[], theirs: readonly string[]): boolean[] {
  const least = Math.min(mine.length, theirs.length);
  let start = 0;
  while (start < least && mine[start] === theirs[start]) start += 1;
  let end = 0;
  while (end < least - start && mine.at(-1 - end) === theirs.at(-1 - end)) end += 1;
  return mine.map((_, at) => at < start || at >= mine.length - end);
}

/** Which words are in the longest common sequence. */
function common(mine: readonly string[], theirs: readonly string[]): boolean[] {
  const table = Array.from({ length: mine.length + 1 }, () => new Uint16Array(theirs.length + 1));
  const length = (at: number, other: number): number => table[at]?.[other] ?? 0;
  for (let at = mine.length - 1; at >= 0; at -= 1) {
    const row = table[at] ?? new Uint16Array();
    for (let other = theirs.length - 1; other >= 0; other -= 1) {
      const isSame = mine[at] === theirs[other];
      row[other] = isSame ? length(at + 1, other + 1) + 1 : Math.max(length(at + 1, other), length(at, other + 1));
    }
  }
  const kept = mine.map(() => false);
  let [at, other] = [0, 0];
  while (at < mine.length && other < theirs.length) {
    if (mine[at] === theirs[other]) {
      kept[at] = true;
      at += 1;
      other += 1;
    } else if (length(at + 1, other) >= length(at, other + 1)) at += 1;
    else other += 1;
  }
  return kept;
}
