// What a decision says beyond approve or reject. It is sealed to the enforcer, since the decision itself travels in the clear.

import { utf8 } from "./bytes.ts";
import { FormatError } from "./errors.ts";
import { type JsonValue, parse } from "./json.ts";
import { list, Members, object, text } from "./members.ts";

/** The words of a decision. */
export interface Words {
  /** For the agent: why not, or what to mind. */
  readonly reason?: string | undefined;
  /** What was shown to the person, in the words of this program. */
  readonly shown?: string | undefined;
  /** The id of the requested action that was chosen. */
  readonly action?: string | undefined;
  /** Which other commands an approval for a time or a session covers. */
  readonly pattern?: Pattern | undefined;
  /** What the person has changed. It is refused as it was, and asked anew as they have written it. */
  readonly edit?: Edit | undefined;
}

/** New texts, each by the JSON pointer of the member of the call that it is for. */
export type Edit = Readonly<Record<string, string>>;

/** The longest edit, in bytes of its JSON text. */
export const MAX_EDIT = 32_768;

/** The size of an edit, in bytes of its JSON text. */
export function editSize(edit: Edit): number {
  return utf8(JSON.stringify(edit)).length;
}

/** A pattern of a program and its arguments (docs/grants.md). */
export interface Pattern {
  readonly argv: readonly string[];
}

/** Checks the words of a pattern. Throws a `FormatError`. */
export function pattern(argv: readonly string[]): Pattern {
  const [program, ...operands] = argv;
  if (program === undefined || program === "" || program.includes("*")) {
    throw new FormatError("pattern", "must begin with the name of a program");
  }
  const isClear = (word: string, at: number): boolean =>
    !word.includes("*") || word === "*" || (word === "**" && at === operands.length - 1);
  if (!operands.every(isClear)) {
    throw new FormatError("pattern", "has a star within a word; write * for one argument, or ** as the last word");
  }
  return { argv: [...argv] };
}

/** Whether a pattern covers a program with these arguments. A star never covers an argument that begins with `-`. */
export function covers({ argv: words }: Pattern, argv: readonly string[]): boolean {
  const hasRest = words.at(-1) === "**";
  const named = hasRest ? words.slice(0, -1) : words;
  if (argv.length < named.length || (argv.length > named.length && !hasRest)) return false;
  const isOperand = (argument: string): boolean => !argument.startsWith("-");
  const fits = argv.every((argument, at) => {
    const word = named[at] ?? "*";
    return word === "*" ? isOperand(argument) : word === argument;
  });
  return fits;
}

/** The words as JSON text. */
export function writeWords({ reason, shown, action, pattern: commands, edit }: Words): string {
  return JSON.stringify({ reason, shown, action, pattern: commands, edit });
}

/** Reads the words of a decision. Throws a `JsonError` or a `FormatError`. */
export function readWords(json: string | Uint8Array): Words {
  const members = new Members(parse(json));
  const words = {
    reason: members.optional("reason", text),
    shown: members.optional("shown", text),
    action: members.optional("action", text),
    pattern: members.optional("pattern", readPattern),
    edit: members.optional("edit", readEdit),
  };
  members.close();
  return words;
}

function readPattern(value: JsonValue, at: string): Pattern {
  const members = new Members(value, at);
  const argv = members.required("argv", list(text));
  members.close();
  return pattern(argv);
}

function readEdit(value: JsonValue, at: string): Edit {
  const { members, source } = object(value, at);
  if (members.size === 0) throw new FormatError(at, "has no member");
  if (utf8(source).length > MAX_EDIT) throw new FormatError(at, `has more than ${MAX_EDIT} bytes`);
  return Object.fromEntries([...members].map(([place, member]) => [place, text(member, `${at}.${place}`)]));
}
