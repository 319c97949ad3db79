// One line of a request, made visible, and the parts that lines are in.

import { visibleCode } from "../../protocol/index.ts";

/** How a line is drawn. Colours only repeat what its text says. `known` is a line of a diff that its heading says already. */
export type LineKind =
  | "text"
  | "added"
  | "removed"
  | "hunk"
  | "known"
  | "note"
  | "heading"
  | "prose"
  | "asked"
  | "code"
  | "shell"
  | "where"
  | "fact";

/** One line, made visible. */
export interface Line {
  readonly kind: LineKind;
  readonly text: string;
  /** What a fact is about. */
  readonly label?: string;
  /** The number of the line before and after a change; only the second one where nothing changes. */
  readonly numbers?: readonly [before: number | undefined, after: number | undefined];
  /** The line that this one replaces, or that replaces it: words that differ are marked. */
  readonly pair?: string;
  /** Whether words that delete, send, start or stop are marked in it. */
  readonly hasActs?: boolean;
}

/** A part of a request: what is always there, or a file that is folded and unfolded. */
export interface Section {
  /** What it is called; `undefined` for what is never folded. */
  readonly title: string | undefined;
  /** Behind the title, such as a size. */
  readonly note: string;
  readonly lines: readonly Line[];
  readonly isFolded: boolean;
  /**
   * What has to be on the screen before it can be approved: every line of it, `always`; one line, if there is reason for
   * `caution`; nothing, `never`, and then it is not counted either.
   */
  readonly need: "always" | "caution" | "never";
  /** Whether its lines are drawn with what a person can choose, and not with the content. */
  readonly isOfChoices?: boolean;
}

/** A line, made visible before. */
export function line(text: string, kind: LineKind = "text"): Line {
  return { kind, text };
}

/** Something that the signature covers, and what it is called. */
export function fact(label: string, text: string): Line {
  return { kind: "fact", label, text };
}

/** A line of code as it is shown: what can't be seen is written out, a tab as the terminal's inbox writes it. */
export function shownCode(text: string): string {
  return visibleCode(text).replaceAll("⟨U+0009⟩", "⟨⇥⟩");
}
