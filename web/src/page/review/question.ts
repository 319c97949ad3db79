// A question with choices, as it is shown: asked once, each choice with its description. All of it is the agent's words.

import {
  type Action,
  type Checkpoint,
  type Common,
  isSerious,
  type JsonValue,
  leaves,
  type OpenedRequest,
  type Payload,
} from "../../protocol/index.ts";

/** A choice, and what the agent says about it. */
export interface QuestionChoice {
  readonly action: Action;
  readonly description: string;
}

/** A question that is answered with one of its choices. */
export interface Question {
  /** What is asked; empty if only the summary says it. */
  readonly text: string;
  /** What the question is about, in a word or two; empty if nothing says it. */
  readonly topic: string;
  readonly choices: readonly QuestionChoice[];
  /** The members of the call that this shows. */
  readonly shown: ReadonlySet<string>;
  /** The lines of the checkpoint that it shows. */
  readonly lines: ReadonlySet<string>;
}

/** Whether an agent asks its person something, and runs nothing by itself. */
export function isQuestion(payload: Payload): payload is Checkpoint & Common {
  return payload.kind === "checkpoint" && payload.call !== undefined && !isSerious(payload);
}

/** The choices of a question; empty if it is none, or one of them needs more care than a choice. */
export function choicesOf({ actions }: OpenedRequest, payload: Payload): readonly Action[] {
  if (payload.kind !== "checkpoint" || isSerious(payload)) return [];
  return actions.some(({ style }) => style === "danger")
    ? []
    : actions.filter(({ decision }) => decision === "approve");
}

/** Whether it is answered, and not approved: it has choices, or is a question that words answer. */
export function isAsked(request: OpenedRequest, payload: Payload): boolean {
  return choicesOf(request, payload).length > 0 || isQuestion(payload);
}

/** The question of a request, with what its call says about each choice; `undefined` if it has no choices. */
export function questionOf(request: OpenedRequest, payload: Payload): Question | undefined {
  const choices = choicesOf(request, payload);
  if (choices.length === 0 || payload.kind !== "checkpoint") return undefined;
  const members = new Map(payload.call === undefined ? [] : leaves(payload.call.message));
  const place = placeOf(members, choices);
  if (place === undefined)
    return {
      text: "",
      topic: "",
      choices: choices.map((action) => ({ action, description: "" })),
      shown: new Set(),
      lines: new Set(),
    };
  const at = (name: string): string => textAt(members, `${place}/${name}`);
  const descriptions = choices.map((_, index) => `${place}/options/${index}/description`);
  const text = at("question");
  return {
    text,
    topic: at("header"),
    choices: choices.map((action, index) => ({ action, description: textAt(members, descriptions[index] ?? "") })),
    shown: new Set([
      ...[`${place}/header`, ...descriptions].filter((pointer) => textAt(members, pointer) !== ""),
      // One choice can be made, which is what the screen offers.
      ...(members.get(`${place}/multiSelect`) === false ? [`${place}/multiSelect`] : []),
    ]),
    lines: new Set([
      `The agent asks: ${text}`,
      text,
      ...choices.map(({ caption }, index) => `${index + 1}. ${caption}`),
    ]),
  };
}

function textAt(members: ReadonlyMap<string, JsonValue>, pointer: string): string {
  const value = members.get(pointer);
  return typeof value === "string" ? value : "";
}

/** Where the call has the question whose options are these choices, all of them in this order. */
function placeOf(members: ReadonlyMap<string, JsonValue>, choices: readonly Action[]): string | undefined {
  const places = [...members.keys()].flatMap((pointer) => /^(.*)\/options\/0\/label$/s.exec(pointer)?.[1] ?? []);
  return places.find((place) => {
    const label = (index: number): JsonValue | undefined => members.get(`${place}/options/${index}/label`);
    const isSame = choices.every(({ caption }, index) => label(index) === caption);
    return isSame && label(choices.length) === undefined && textAt(members, `${place}/question`) !== "";
  });
}
