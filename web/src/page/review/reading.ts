// How much of a request was on the screen: a line counts when all of it was there, a file when it was unfolded there.

import { isFile, isGrave, type ReviewDocument } from "./document.ts";

/** How much was on the screen until now. */
export interface Shown {
  readonly files: number;
  readonly ofFiles: number;
  readonly lines: number;
  readonly ofLines: number;
  /** Lines without which nothing can be approved, and that were not there. */
  readonly unread: number;
}

/** Counts what was on the screen. */
export class Reading {
  readonly #document: ReviewDocument;
  readonly #lines: readonly Uint8Array[];
  readonly #opened: boolean[];
  #shownLines = 0;

  constructor(document: ReviewDocument) {
    this.#document = document;
    this.#lines = document.sections.map(({ lines }) => new Uint8Array(lines.length));
    this.#opened = document.sections.map(() => false);
  }

  /** A line was on the screen. Whether that is new. */
  see(section: number, line: number): boolean {
    const lines = this.#lines[section];
    if (lines === undefined || line >= lines.length || lines[line] === 1) return false;
    lines[line] = 1;
    this.#opened[section] = true;
    if (this.#document.sections[section]?.need === "never") return false;
    this.#shownLines += 1;
    return true;
  }

  /** Whether a file was unfolded on the screen. */
  isOpened(section: number): boolean {
    return this.#opened[section] === true;
  }

  get shown(): Shown {
    const { sections, files, lines } = this.#document;
    const opened = sections.filter((section, at) => isFile(section) && this.isOpened(at)).length;
    const unread = sections.reduce((sum, _, at) => sum + (this.#mustBeRead(at) ? this.#unseen(at).length : 0), 0);
    return { files: opened, ofFiles: files, lines: this.#shownLines, ofLines: lines, unread };
  }

  /** Whether every line of a section must have been there: of what is dangerous or nobody could examine, all but the proof. */
  #mustBeRead(section: number): boolean {
    const need = this.#document.sections[section]?.need;
    return need === "always" || (need === "caution" && isGrave(this.#document.caution));
  }

  /** The lines of a section that were not on the screen. */
  #unseen(section: number): number[] {
    return [...(this.#lines[section] ?? [])].flatMap((seen, line) => (seen === 1 ? [] : [line]));
  }

  /** The first file that was not opened, or the first line that must be read and was not there. */
  get next(): { section: number; line: number } | undefined {
    for (const [section, part] of this.#document.sections.entries()) {
      const line = this.#mustBeRead(section) ? this.#unseen(section)[0] : undefined;
      if (line !== undefined) return { section, line };
      if (isFile(part) && !this.isOpened(section)) return { section, line: 0 };
    }
    return undefined;
  }
}
