// Text from others as it can be shown: nothing in it is invisible, moves other text, or looks like what it is not.
//
// A character that could mislead is written as its code point, such as `⟨U+202E⟩`. The brackets of that notation are themselves
// written so, and no two texts look the same because of it. The lists are those of `crates/client/src/content/payload/visible.rs`.

/** Prose on one line: control characters, line breaks included, what is invisible or changes direction, and letters that
 * imitate those of the word around them become visible. */
export function visible(text: string): string {
  return shown(text, false);
}

/** A command or a path on one line: as {@link visible}, and also what imitates ASCII punctuation, such as `∕` or `；`. */
export function visibleCode(text: string): string {
  return shown(text, true);
}

/** The lines of a text, each as {@link visibleCode} shows it. Line breaks are LF; a CR before one is shown. */
export function visibleLines(text: string): string[] {
  return text.split("\n").map(visibleCode);
}

/** Prose that its sender says is visible already: as {@link visible}, and code points that are written as such stay so. */
export function visibleStill(text: string): string {
  return visible(text).replace(/⟨U\+27E8⟩(U\+[0-9A-F]{4,6})⟨U\+27E9⟩/gu, "⟨$1⟩");
}

/** Prose of several lines on one, as {@link visible} shows it. */
export function oneLine(text: string): string {
  return visible(text.replace(/\s*\n\s*/g, " ").trim());
}

/** Marks on one letter, as Vietnamese needs them. */
const MAX_MARKS = 2;

function shown(text: string, isCode: boolean): string {
  // By far the usual case, and the fast one: diffs have many lines.
  if (/^[ -~]*$/.test(text)) return text;
  let [written, marks] = ["", 0];
  for (const word of words(text)) {
    const isMixed = /[a-zA-Z]/.test(word);
    for (const character of word) {
      const isMark = COMBINING.test(character);
      // Marks are drawn over what is before them; a pile of them covers the lines around.
      marks = isMark ? marks + 1 : 0;
      const misleads =
        isHidden(character) ||
        /[⟨⟩]/u.test(character) ||
        (isMark && (written === "" || marks > MAX_MARKS)) ||
        (isMixed && LIKE_A_LETTER.test(character)) ||
        (isCode && LIKE_PUNCTUATION.test(character));
      written += misleads ? notation(character) : character;
    }
  }
  return written;
}

function notation(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** The text in runs of letters and digits, and of everything else. */
function words(text: string): string[] {
  const runs: string[] = [];
  let wasOfWord: boolean | undefined;
  for (const character of text) {
    const isOfWord = /[\p{Alphabetic}\p{N}]/u.test(character) || isHidden(character) || COMBINING.test(character);
    if (isOfWord === wasOfWord) runs[runs.length - 1] += character;
    else runs.push(character);
    wasOfWord = isOfWord;
  }
  return runs;
}

/** Control and format characters, separators other than the space, private and unassigned code points, half characters, and
 * letters that are drawn as nothing. */
function isHidden(character: string): boolean {
  return character !== " " && (/[\p{C}\p{Z}]/u.test(character) || BLANK.test(character));
}

function regex(ranges: string): RegExp {
  return new RegExp(`^[${ranges}]$`, "u");
}

/** Assigned letters, marks and symbols that are drawn as nothing: fillers, variation selectors, the blank of braille. */
const BLANK = regex(
  String.raw`\u{34f}\u{115f}-\u{1160}\u{17b4}-\u{17b5}\u{180b}-\u{180f}\u{2800}\u{3164}\u{fe00}-\u{fe0f}\u{ffa0}` +
    String.raw`\u{e0000}-\u{e0fff}`,
);

/** Marks that are drawn over any letter. */
const COMBINING = regex(
  String.raw`\u{300}-\u{36f}\u{483}-\u{489}\u{1ab0}-\u{1aff}\u{1dc0}-\u{1dff}\u{20d0}-\u{20ff}\u{fe20}-\u{fe2f}`,
);

/** Letters and digits of other alphabets, which have no place in a word with ASCII letters. */
const LIKE_A_LETTER = regex(
  String.raw`\u{251}\u{261}\u{26a}\u{131}\u{17f}\u{1c0}\u{370}-\u{3ff}\u{400}-\u{52f}\u{531}-\u{58f}` +
    String.raw`\u{13a0}-\u{13ff}\u{1c80}-\u{1c8f}\u{1d00}-\u{1dbf}\u{1f00}-\u{1fff}\u{2070}-\u{209c}` +
    String.raw`\u{2100}-\u{218b}\u{2460}-\u{24ff}\u{2c80}-\u{2cff}\u{2de0}-\u{2dff}\u{a4d0}-\u{a4ff}` +
    String.raw`\u{a640}-\u{a69f}\u{ab30}-\u{abbf}\u{ff10}-\u{ff19}\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}` +
    String.raw`\u{10280}-\u{1031f}\u{10400}-\u{1044f}\u{118a0}-\u{118ff}\u{1d400}-\u{1d7ff}\u{1f100}-\u{1f1ff}` +
    String.raw`\u{1fbf0}-\u{1fbf9}`,
);

/** What looks like a character that shells and paths give a meaning to. */
const LIKE_PUNCTUATION = regex(
  String.raw`\u{ad}\u{b4}\u{2b9}-\u{2df}\u{374}-\u{375}\u{37e}\u{387}\u{589}\u{5c3}\u{5f3}-\u{5f4}\u{60c}` +
    String.raw`\u{66a}-\u{66d}\u{6d4}\u{1427}\u{1735}\u{2010}-\u{201f}\u{2022}-\u{2027}\u{2032}-\u{203a}\u{203c}` +
    String.raw`\u{2041}\u{2043}-\u{204f}\u{2052}-\u{2053}\u{207a}-\u{207e}\u{208a}-\u{208e}\u{2212}` +
    String.raw`\u{2215}-\u{2217}\u{2219}\u{2223}\u{2236}\u{223c}\u{22c5}-\u{22c6}\u{2400}-\u{2426}\u{2500}\u{2502}` +
    String.raw`\u{2571}-\u{2573}\u{2758}\u{275b}-\u{275e}\u{2768}-\u{2775}\u{2795}-\u{2796}\u{27cb}\u{27cd}` +
    String.raw`\u{29f5}-\u{29f9}\u{2e3a}-\u{2e3b}\u{3002}\u{3008}-\u{300b}\u{3014}-\u{3015}\u{30fb}` +
    String.raw`\u{a4f8}-\u{a4ff}\u{a789}-\u{a78c}\u{fe10}-\u{fe19}\u{fe30}-\u{fe6b}\u{ff01}-\u{ff0f}` +
    String.raw`\u{ff1a}-\u{ff20}\u{ff3b}-\u{ff40}\u{ff5b}-\u{ff65}\u{ffe3}`,
);
