// A request as lines that can be shown, and counted when they were. Every text in it is made visible here.

import {
  alarmOf,
  type Checkpoint,
  type Command,
  type Common,
  EFFECT_PHRASES,
  type Effect,
  isDangerous,
  type OpenedRequest,
  type Patch,
  type Payload,
  type Plan,
  quoted,
  visible,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { askingLines, asTheyAre, proofSection, restSection } from "./call.ts";
import { diffFiles } from "./diff.ts";
import { type Line, type LineKind, line, type Section, shownCode } from "./line.ts";

/**
 * What has to be done before it can be approved. `not-examined`: what nobody has derived the effects of; `unknown`: nobody
 * could tell which code runs, which is as serious as `dangerous`.
 */
export type Caution = "none" | "not-examined" | "unknown" | "dangerous";

/** Whether the lock of the device and a held button are asked for. */
export function isGrave(caution: Caution): boolean {
  return caution === "unknown" || caution === "dangerous";
}

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

/** The effects as chips. */
export function chips(payload: Payload | undefined): { text: string; isDangerous: boolean }[] {
  if (payload === undefined || (payload.state === "notExamined" && payload.effects === undefined))
    return [{ text: texts.notExamined, isDangerous: true }];
  const effects = (payload.effects ?? []).map(({ effect, detail }) => ({
    text: detail === undefined ? EFFECT_PHRASES[effect] : `${EFFECT_PHRASES[effect]} ${visible(detail)}`,
    isDangerous: isDangerous(effect),
  }));
  if (payload.state !== "opaque") return effects;
  const text = payload.kind === "task" ? texts.knownTool : texts.runsProjectCode;
  return [{ text, isDangerous: false }, ...effects];
}

function cautionOf(payload: Payload): Caution {
  const cautions = { neutral: "none", unclear: "unknown", danger: "dangerous" } as const;
  return cautions[alarmOf(payload)];
}

/** Everything that a request says. */
export function reviewDocument(request: OpenedRequest, payload: Payload): ReviewDocument {
  const parts = [
    ...sectionsOf(payload),
    restSection(payload),
    open(stateLines(payload)),
    open(askingLines(payload)),
    aboutSection(request),
    proofSection(payload),
  ];
  const sections = parts.filter(({ lines }) => lines.length > 0);
  const counted = sections.filter(({ need }) => need !== "never");
  const together = counted.reduce((sum, { lines }) => sum + lines.length, 0);
  const folded = sections.map((section) => ({
    ...section,
    isFolded:
      section.title !== undefined &&
      section.need !== "always" &&
      (section.isFolded || section.lines.length > LONG || together > LONG_TOGETHER),
  }));
  return {
    sections: folded,
    caution: cautionOf(payload),
    files: folded.filter(isFile).length,
    lines: together,
  };
}

/** Whether a section is a file that a person opens. */
export function isFile({ title, need }: Section): boolean {
  return title !== undefined && need === "caution";
}

function open(lines: readonly Line[]): Section {
  return { title: undefined, note: "", lines, isFolded: false, need: "caution" };
}

/** What nobody could derive, or who asks for what is certain in part only. Effects are beside it. */
function stateLines(payload: Payload): Line[] {
  if (payload.state === "opaque") {
    const text = payload.kind === "task" ? texts.knownToolLine : texts.runsProjectCodeLine;
    return [line(text, "note"), ...effectLines(payload.effects)];
  }
  if (payload.state === "notExamined") return [line(texts.runsUnknownLine, "note")];
  return effectLines(payload.effects);
}

/** Where it comes from, and what is signed. */
function aboutSection(request: OpenedRequest): Section {
  const facts = [`${texts.factRequest} ${visible(request.requestId)}`, `${texts.factHash} ${request.artifactHash}`];
  if (request.session !== undefined) facts.push(`${texts.factSession} ${visible(request.session)}`);
  if (request.supersedes !== undefined) facts.push(`${texts.factReplaces} ${visible(request.supersedes)}`);
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
      return [open(planLines(payload))];
    case "checkpoint":
      return [open(checkpointLines(payload))];
    case "raw":
      return [
        open([
          line(
            `${texts.shownAsJson} ${payload.reason}${payload.rule === "" ? "" : `: ${visible(payload.rule)}`}`,
            "note",
          ),
          ...payload.text.split("\n").map((text) => line(shownCode(text), "code")),
        ]),
      ];
  }
}

function effectLines(effects: readonly Effect[] | undefined): Line[] {
  if (effects === undefined) return [];
  return effects.map(({ effect, detail }) => {
    const text = `${texts.factEffect} ${EFFECT_PHRASES[effect]}${detail === undefined ? "" : ` ${visible(detail)}`}`;
    return line(isDangerous(effect) ? `${text}${texts.whichIsDangerous}` : text, "note");
  });
}

function commandSections(command: Command & Common): Section[] {
  const { invocation } = command;
  const runs =
    "shell" in invocation
      ? [line(texts.factShell, "note"), ...invocation.shell.split("\n").map((text) => line(shownCode(text), "code"))]
      : invocation.argv.map((argument, at) =>
          line(`${at === 0 ? texts.factRuns : texts.factArgument} ${shownCode(quoted(argument))}`, "code"),
        );
  // First, as before a command in a shell: a variable can change what runs.
  const variables = command.env.map(({ name, value }) =>
    line(`${texts.factVariable} ${shownCode(name)}=${value === undefined ? texts.secretValue : shownCode(value)}`),
  );
  const lines = [...variables, ...runs, line(`${texts.factFolder} ${shownCode(command.cwd)}`), ...asTheyAre(command)];
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
      need: "caution",
    };
  });
  return [open(lines), ...files];
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
      need: "caution",
    }),
  );
  const digests = patch.files.map((file) => {
    const sides = `${file.baseDigest ?? texts.nothing} → ${file.resultDigest ?? texts.nothing}`;
    return line(`SHA-256 ${shownCode(file.path)}: ${sides}`, "note");
  });
  return [open(list), ...files, open(digests)];
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
