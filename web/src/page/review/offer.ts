// What an approval can cover, each with one sentence that says what would then run without asking.

import {
  pattern as checkedPattern,
  covers,
  isSerious,
  type OpenedRequest,
  type Pattern,
  type Payload,
  quoted,
  type Scope,
  visibleCode,
} from "../../protocol/index.ts";
import { texts } from "../../texts.ts";

/** A scope that a person can choose. It has what its sentence says and what is signed, so that both are the same. */
export interface Offer {
  readonly scope: Scope;
  readonly name: string;
  readonly sentence: string;
  /** How long after it was signed the approval counts. */
  readonly millis: number;
  readonly pattern: Pattern | undefined;
}

const MINUTE = 60_000;

export const ONCE: Offer = {
  scope: "once",
  name: texts.scopeOnce,
  sentence: texts.scopeOnceSentence,
  millis: 10 * MINUTE,
  pattern: undefined,
};

/** Whether machines remember an approval of it: not of what always asks, nor of the first version of payloads. */
export function canBeGranted(payload: Payload): boolean {
  return payload.version === 2 && !isSerious(payload);
}

/** Exactly this, again, in the session of the request; `undefined` if it has none, or always asks. */
export function sessionOffer({ session, isEdited }: OpenedRequest, payload: Payload): Offer | undefined {
  if (session === undefined || isEdited || !canBeGranted(payload)) return undefined;
  return {
    scope: "session",
    name: texts.scopeSession,
    sentence: texts.scopeSessionSentence,
    millis: 8 * 60 * MINUTE,
    pattern: undefined,
  };
}

/** The arguments of a command that can have a pattern; `undefined` if it can't. */
export function patternArguments(payload: Payload): readonly string[] | undefined {
  // A pattern is for what is certain to do what its arguments say.
  if (payload.kind !== "command" || payload.state !== "examined" || !canBeGranted(payload)) return undefined;
  return "argv" in payload.invocation ? payload.invocation.argv : undefined;
}

/** Whether any argument may be in place of this one. Options change what a program does. */
export function canBeAny(argument: string, at: number): boolean {
  return at > 0 && !argument.startsWith("-");
}

/** An hour for what a pattern covers; `undefined` if the pattern is none or does not cover what is shown. */
export function hourOffer(payload: Payload, any: ReadonlySet<number>, hasRest: boolean): Offer | undefined {
  const argv = patternArguments(payload);
  if (argv === undefined || payload.kind !== "command") return undefined;
  const words = [
    ...argv.map((argument, at) => (any.has(at) && canBeAny(argument, at) ? "*" : argument)),
    ...(hasRest ? ["**"] : []),
  ];
  try {
    const pattern = checkedPattern(words);
    if (!covers(pattern, argv)) return undefined;
    const text = words.map((word) => (word === "*" || word === "**" ? word : visibleCode(quoted(word)))).join(" ");
    const sentence = texts.scopeHourSentence(text, visibleCode(payload.cwd));
    return { scope: "timebox", name: texts.scopeHour, sentence, millis: 60 * MINUTE, pattern };
  } catch {
    return undefined;
  }
}
