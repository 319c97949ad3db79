// A request as lines that can be shown, and counted when they were. Every text in it is made visible here.

import {
  alarmOf,
  type Checkpoint,
  type Command,
  type CommandFile,
  type Common,
  type OpenedRequest,
  type Patch,
  type PatchFile,
  type Payload,
  type Plan,
  quoted,
  sentenceOf,
  shortFingerprint,
  visible,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";
import { actPieces } from "./acts.ts";
import { callFacts, inputLines, restSection } from "./call.ts";
import { diffFiles } from "./diff.ts";
import { belowProject, inProject } from "./folder.ts";
import { fact, type Line, type LineKind, line, type Section, shownCode } from "./line.ts";
import { type Question, questionOf } from "./question.ts";

/** How much care it needs. `unknown`: nobody could tell which code runs, which is as serious as `dangerous`. */
export type Caution = "none" | "unknown" | "dangerous";

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
/** A script with at most so many lines is unfolded. */
const SHORT = 40;

function cautionOf(payload: Payload): Caution {
  const cautions = { neutral: "none", unclear: "unknown", danger: "dangerous" } as const;
  return cautions[alarmOf(payload)];
}

/** Everything that a request says: what was asked first, the proof last. */
export function reviewDocument(request: OpenedRequest, payload: Payload): ReviewDocument {
  const question = questionOf(request, payload);
  const rest = question === undefined ? payload.rest : payload.rest.filter(([place]) => !question.shown.has(place));
  const parts = [
    ...sectionsOf(request, payload, question),
    ...(question === undefined ? [] : [choicesSection(question)]),
    restSection(rest),
    proofSection(request, payload),
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

/** All that the signature covers and that is no content: hashes, ids and where it comes from. */
function proofSection(request: OpenedRequest, payload: Payload): Section {
  const { artifactHash, requestId, session, supersedes, enforcerId, sentBy } = request;
  const lines = [
    fact(texts.factHash, artifactHash),
    ...contentFacts(payload),
    fact(texts.factRequest, visible(requestId)),
    ...(supersedes === undefined ? [] : [fact(texts.factReplaces, visible(supersedes))]),
    fact(texts.factKey(visible(enforcerId)), shortFingerprint(sentBy.bundle)),
    ...(session === undefined ? [] : [fact(texts.factSession, visible(session))]),
    ...(payload.call === undefined ? [] : callFacts(payload.call)),
  ];
  return { title: texts.proofTitle, note: texts.proofNote, lines, isFolded: true, need: "never" };
}

/** What identifies the content, and is no content itself. */
function contentFacts(payload: Payload): Line[] {
  if (payload.kind === "command") {
    const { invocation, cwd, baseRevision, stdin, files } = payload;
    const programs = files.filter(isProgram).map(({ path, size, digest }) => {
      return fact(texts.factProgram, `${shownCode(path)}, ${texts.bytes(size)}, SHA-256 ${digest}`);
    });
    return [
      ...("argv" in invocation
        ? [fact(texts.factArguments, invocation.argv.map((argument) => shownCode(quoted(argument))).join(" · "))]
        : []),
      fact(texts.proofFolder, shownCode(cwd)),
      ...(baseRevision === undefined ? [] : [fact(texts.factCommit, shownCode(baseRevision))]),
      ...(stdin === undefined ? [] : [fact(texts.factInputDigest, stdin.digest)]),
      ...programs,
      ...files
        .filter((file) => !isProgram(file))
        .map(({ path, digest }) => fact(texts.factDigest(shownCode(path)), digest)),
    ];
  }
  if (payload.kind === "patch") {
    return payload.files.map(({ path, baseDigest, resultDigest }) => {
      const sides = `${baseDigest ?? texts.nothing} → ${resultDigest ?? texts.nothing}`;
      return fact(texts.factSides(shownCode(path)), sides);
    });
  }
  if (payload.kind !== "checkpoint") return [];
  return payload.earlier.map(({ requestId, artifactHash }) =>
    fact(texts.earlier, `${visible(requestId)}, SHA-256 ${artifactHash}`),
  );
}

/** Whether a file is a program without a text: it is named, and is nothing to open. */
function isProgram({ role, content }: CommandFile): boolean {
  return role === "executable" && content === undefined;
}

/** The choices. What the agent says about one is part of the call, so each must have been on the screen. */
function choicesSection({ choices }: Question): Section {
  const lines = choices.map(({ action, description }) => line(visible(`${action.caption}: ${description}`), "prose"));
  const need = choices.some(({ description }) => description !== "") ? "always" : "caution";
  return { title: undefined, note: "", lines, isFolded: false, need, isOfChoices: true };
}

function sectionsOf(request: OpenedRequest, payload: Payload, question: Question | undefined): Section[] {
  switch (payload.kind) {
    case "command":
      return commandSections(request, payload);
    case "patch":
      return patchSections(payload);
    case "plan":
    case "task":
      return [open(planLines(payload))];
    case "checkpoint":
      return [open(checkpointLines(payload, question))];
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

function commandSections({ enforcerId }: OpenedRequest, command: Command & Common): Section[] {
  const { invocation } = command;
  const text = "shell" in invocation ? invocation.shell : invocation.argv.map(quoted).join(" ");
  // First, as before a command in a shell: a variable can change what runs.
  const variables = command.env.map(({ name, value }) =>
    line(`${texts.factVariable} ${shownCode(name)}=${value === undefined ? texts.secretValue : shownCode(value)}`),
  );
  const lines = [
    ...variables,
    ...text.split("\n").map((part) => line(shownCode(part), "shell")),
    line(texts.where(shownCode(inProject(command.cwd, command.call)), visible(enforcerId)), "where"),
    ...inputLines(command),
    ...(command.stdin === undefined ? [] : [line(texts.factInput(command.stdin.size), "note")]),
  ];
  const files = command.files
    .filter((file) => !isProgram(file))
    .map((file): Section => {
      const content = fileLines(file.content, command.state === "opaque");
      const isMarked = content.some(
        ({ text, hasActs }) => hasActs === true && actPieces(text).some((one) => one.isAct),
      );
      return {
        title: shownCode(belowProject(file.path, command.call)),
        note: `${texts.role[file.role]}, ${texts.bytes(file.size)}`,
        lines: isMarked ? [line(texts.actsMarked, "note"), ...content] : content,
        isFolded: content.length > SHORT,
        need: "caution",
      };
    });
  return [open(lines), ...files];
}

function fileLines(content: string | undefined, hasActs: boolean): Line[] {
  if (content === undefined) return [line(texts.contentNotSent, "note")];
  const lines = content.replace(/\n$/, "").split("\n");
  const numbered = lines.map(
    (text, at): Line => ({ kind: "code", text: shownCode(text), numbers: [undefined, at + 1], hasActs }),
  );
  return content === "" || content.endsWith("\n") ? numbered : [...numbered, line(texts.noLineBreak, "note")];
}

function patchSections(patch: Patch): Section[] {
  const drawn = diffFiles(patch.diff);
  const names = new Set(drawn.map(({ name }) => name));
  const said = (file: PatchFile): string => {
    const from = file.previousPath === undefined ? "" : ` ${texts.from} ${shownCode(file.previousPath)}`;
    return file.status === "modified" ? "" : `${texts.status[file.status]}${from}`;
  };
  const files = drawn.map((file): Section => {
    const listed = patch.files.find(({ path }) => path === file.name);
    const status = listed === undefined ? "" : said(listed);
    const count = file.isBinary ? texts.binary : `+${file.added} −${file.removed}`;
    return {
      title: shownCode(file.name),
      note: status === "" ? count : `${status}, ${count}`,
      lines: file.lines,
      isFolded: file.isBinary,
      need: "caution",
    };
  });
  // What the list names and the diff does not have under this name, such as a file that only moves.
  const others = patch.files
    .filter(({ path }) => !names.has(path))
    .map((file) => line(`${texts.status[file.status]} ${shownCode(file.path)}, +${file.added} −${file.removed}`));
  return [open(others), ...files];
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

function checkpointLines(checkpoint: Checkpoint & Common, question: Question | undefined): Line[] {
  const { summary, changes } = checkpoint;
  if (question !== undefined && question.text !== "") return questionLines(checkpoint, question);
  const changed = changes.map((change) => line(`– ${visible(change)}`, "prose"));
  // What is asked in one line is the heading of the screen already.
  const asked = sentenceOf(checkpoint) === visible(summary) ? [] : markdownLines(summary);
  return [...asked, ...(changed.length > 0 ? [line(texts.changes, "note"), ...changed] : [])];
}

/** The question, once; and whatever else the checkpoint says. */
function questionLines({ summary, changes }: Checkpoint, { text, topic, lines }: Question): Line[] {
  const others = [summary, ...changes].filter((said) => !lines.has(said));
  return [
    ...(topic === "" ? [] : [line(visible(topic), "note")]),
    ...text.split("\n").map((part) => line(visible(part), "asked")),
    ...others.flatMap(markdownLines),
  ];
}
