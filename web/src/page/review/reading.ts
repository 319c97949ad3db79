// How much of a request was on the screen: a line counts when all of it was there, a file when it was unfolded there.

import type { ReviewDocument } from "./document.ts";

/** How much was on the screen until now. */
export interface Shown {
  readonly files: number;
  readonly ofFiles: number;
  readonly lines: number;
  readonly ofLines: number;
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
    this.#shownLines += 1;
    this.#opened[section] = true;
    return true;
  }

  /** Whether a file was unfolded on the screen. */
  isOpened(section: number): boolean {
    return this.#opened[section] === true;
  }

  get shown(): Shown {
    const { sections, files, lines } = this.#document;
    const opened = sections.filter(({ title }, at) => title !== undefined && this.isOpened(at)).length;
    return { files: opened, ofFiles: files, lines: this.#shownLines, ofLines: lines };
  }

  /** The first file that was not opened. */
  get nextUnopened(): number | undefined {
    const at = this.#document.sections.findIndex(
      ({ title }, section) => title !== undefined && !this.isOpened(section),
    );
    return at < 0 ? undefined : at;
  }
}
