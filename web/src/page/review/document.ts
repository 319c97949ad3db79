// A request as lines that can be shown, and counted when they were. Every text in it is made visible here.

import {
  type Checkpoint,
  type Command,
  EFFECT_PHRASES,
  type Effect,
  isDangerous,
  isDangerousPayload,
  type OpenedRequest,
  type Patch,
  type Payload,
  type Plan,
  quoted,
  visible,
  visibleCode,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { diffFiles } from "./diff.ts";

/** How a line is drawn. Colours only repeat what its text says. */
export type LineKind = "text" | "added" | "removed" | "hunk" | "note" | "heading" | "prose" | "code";

/** One line, made visible. */
export interface Line {
  readonly kind: LineKind;
  readonly text: string;
}

/** A part of a request: what is always there, or a file that is folded and unfolded. */
export interface Section {
  /** What it is called; `undefined` for what is never folded. */
  readonly title: string | undefined;
  /** Behind the title, such as a size. */
  readonly note: string;
  readonly lines: readonly Line[];
  readonly isFolded: boolean;
}

/** What has to be done before it can be approved. */
export type Caution = "none" | "not-examined" | "dangerous";

/** A request as it is shown. */
export interface ReviewDocument {
  readonly sections: readonly Section[];
  readonly caution: Caution;
  /** How many sections are files. */
  readonly files: number;
  readonly lines: number;
}

/** A file with more lines is folded at first, and so is everything if it is more than this together. */
const LONG = 200;
const LONG_TOGETHER = 600;

/** A line of code as it is shown: what can't be seen is written out, a tab as the terminal's inbox writes it. */
export function shownCode(text: string): string {
  return visibleCode(text).replaceAll("⟨U+0009⟩", "⟨⇥⟩");
}

/** The effects as chips. */
export function chips(effects: readonly Effect[] | undefined): { text: string; isDangerous: boolean }[] {
  if (effects === undefined) return [{ text: texts.notExamined, isDangerous: true }];
  return effects.map(({ effect, detail }) => ({
    text: detail === undefined ? EFFECT_PHRASES[effect] : `${EFFECT_PHRASES[effect]} ${visible(detail)}`,
    isDangerous: isDangerous(effect),
  }));
}

/** Everything that a request says. */
export function reviewDocument(request: OpenedRequest, payload: Payload): ReviewDocument {
  const sections = [...sectionsOf(payload), aboutSection(request)].filter(({ lines }) => lines.length > 0);
  const together = sections.reduce((sum, { lines }) => sum + lines.length, 0);
  const folded = sections.map((section) => ({
    ...section,
    isFolded:
      section.title !== undefined && (section.isFolded || section.lines.length > LONG || together > LONG_TOGETHER),
  }));
  const caution = isDangerousPayload(payload) ? "dangerous" : payload.effects === undefined ? "not-examined" : "none";
  return {
    sections: folded,
    caution,
    files: folded.filter(({ title }) => title !== undefined).length,
    lines: together,
  };
}

function line(text: string, kind: LineKind = "text"): Line {
  return { kind, text };
}

function open(lines: readonly Line[]): Section {
  return { title: undefined, note: "", lines, isFolded: false };
}

/** Where it comes from, and what is signed. */
function aboutSection(request: OpenedRequest): Section {
  const facts = [`${texts.factRequest} ${visible(request.requestId)}`, `${texts.factHash} ${request.artifactHash}`];
  if (request.session !== undefined) facts.push(`${texts.factSession} ${visible(request.session)}`);
  return open(facts.map((fact) => line(fact, "note")));
}

function sectionsOf(payload: Payload): Section[] {
  switch (payload.kind) {
    case "command":
      return commandSections(payload);
    case "patch":
      return patchSections(payload);
    case "plan":
    case "task":
      return [open(planLines(payload)), open(effectLines(payload.effects))];
    case "checkpoint":
      return [open(checkpointLines(payload)), open(effectLines(payload.effects))];
    case "raw":
      return [
        open([
          line(`${texts.shownAsJson} ${payload.reason}`, "note"),
          ...payload.text.split("\n").map((text) => line(shownCode(text), "code")),
        ]),
      ];
  }
}

function effectLines(effects: readonly Effect[] | undefined): Line[] {
  if (effects === undefined) return [line(texts.notExaminedLine, "note")];
  return effects.map(({ effect, detail }) => {
    const text = `${texts.factEffect} ${EFFECT_PHRASES[effect]}${detail === undefined ? "" : ` ${visible(detail)}`}`;
    return line(isDangerous(effect) ? `${text}${texts.whichIsDangerous}` : text, "note");
  });
}

function commandSections(command: Command): Section[] {
  const { invocation } = command;
  const runs =
    "shell" in invocation
      ? [line(texts.factShell, "note"), ...invocation.shell.split("\n").map((text) => line(shownCode(text), "code"))]
      : invocation.argv.map((argument, at) =>
          line(`${at === 0 ? texts.factRuns : texts.factArgument} ${shownCode(quoted(argument))}`, "code"),
        );
  const lines = [...runs, line(`${texts.factFolder} ${shownCode(command.cwd)}`)];
  for (const { name, value } of command.env) {
    lines.push(
      line(`${texts.factVariable} ${shownCode(name)}=${value === undefined ? texts.secretValue : shownCode(value)}`),
    );
  }
  if (command.stdin !== undefined) lines.push(line(texts.factInput(command.stdin.size, command.stdin.digest), "note"));
  if (command.baseRevision !== undefined) lines.push(line(`${texts.factCommit} ${shownCode(command.baseRevision)}`));
  const files = command.files.map((file): Section => {
    const content =
      file.content === undefined
        ? [line(texts.contentNotSent, "note")]
        : [
            ...file.content
              .replace(/\n$/, "")
              .split("\n")
              .map((text) => line(shownCode(text), "code")),
            ...(file.content === "" || file.content.endsWith("\n") ? [] : [line(texts.noLineBreak, "note")]),
          ];
    return {
      title: `${texts.role[file.role]} ${shownCode(file.path)}`,
      note: texts.bytes(file.size),
      lines: [...content, line(`SHA-256 ${file.digest}`, "note")],
      isFolded: true,
    };
  });
  return [open(lines), ...files, open(effectLines(command.effects))];
}

function patchSections(patch: Patch): Section[] {
  const list = patch.files.map((file) => {
    const from = file.previousPath === undefined ? "" : ` ${texts.from} ${shownCode(file.previousPath)}`;
    return line(`${texts.status[file.status]} ${shownCode(file.path)}${from}, +${file.added} −${file.removed}`);
  });
  const files = diffFiles(patch.diff).map(
    (file): Section => ({
      title: shownCode(file.name),
      note: file.isBinary ? texts.binary : `+${file.added} −${file.removed}`,
      lines: file.lines,
      isFolded: file.isBinary,
    }),
  );
  const digests = patch.files.map((file) => {
    const sides = `${file.baseDigest ?? texts.nothing} → ${file.resultDigest ?? texts.nothing}`;
    return line(`SHA-256 ${shownCode(file.path)}: ${sides}`, "note");
  });
  return [open(list), ...files, open(digests), open(effectLines(patch.effects))];
}

/** Markdown line by line: what a line is decides how it is drawn, and no character of it is left out. */
export function markdownLines(text: string): Line[] {
  let isCode = false;
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((source) => {
      const isFence = /^\s*(```|~~~)/.test(source);
      const kind: LineKind =
        isCode || isFence || /^(?: {4}|\t)/.test(source) ? "code" : /^#{1,6} /.test(source) ? "heading" : "prose";
      if (isFence) isCode = !isCode;
      return line(kind === "code" ? shownCode(source) : visible(source).replaceAll("⟨U+0009⟩", "⟨⇥⟩"), kind);
    });
}

function planLines({ text, steps }: Plan): Line[] {
  const listed = steps.map((step, at) => line(`${at + 1}. ${visible(step)}`, "prose"));
  return [...markdownLines(text), ...(listed.length > 0 ? [line(texts.steps, "note"), ...listed] : [])];
}

function checkpointLines({ summary, changes, earlier }: Checkpoint): Line[] {
  const changed = changes.map((change) => line(`– ${visible(change)}`, "prose"));
  return [
    ...markdownLines(summary),
    ...(changed.length > 0 ? [line(texts.changes, "note"), ...changed] : []),
    ...earlier.map(({ requestId, artifactHash }) => line(texts.earlier(visible(requestId), artifactHash), "note")),
  ];
}
