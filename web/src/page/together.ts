// Several requests of one task together: which ones can be, what they do in one sentence, and what is left out.

import {
  type Effect,
  isDangerousPayload,
  isSerious,
  type Patch,
  type Payload,
  patchLines,
  sentenceOf,
} from "../protocol/index.ts";
import { texts } from "../texts.ts";
import type { Card } from "./inbox.ts";
import { isAsked } from "./review/question.ts";

/** Whether a request can be reviewed together with others: it needs no more care, and is no question. */
export function canBeTogether({ request, payload, end }: Card): boolean {
  if (request === undefined || payload === undefined || end !== undefined) return false;
  if (request.needsPerson) return false;
  return !isSerious(payload) && payload.kind !== "checkpoint" && request.actions.length === 0;
}

/** Why a request needs its own answer. */
export type LeftOut = keyof typeof texts.leftOutKinds;

function reasonOf({ request, payload }: Card): LeftOut | undefined {
  if (request === undefined || payload === undefined) return undefined;
  if (isDangerousPayload(payload)) return "dangerous";
  if (isSerious(payload)) return "unclear";
  if (request.needsPerson) return "locked";
  return payload.kind === "checkpoint" || isAsked(request, payload) ? "question" : "buttons";
}

/** What needs an answer of its own, in words; empty if nothing does. */
export function leftOut(cards: readonly Card[]): string {
  const others = cards.filter((card) => card.end === undefined && !canBeTogether(card));
  const reasons = others.flatMap((card) => reasonOf(card) ?? []);
  const kinds = (Object.keys(texts.leftOutKinds) as LeftOut[]).flatMap((kind) => {
    const count = reasons.filter((reason) => reason === kind).length;
    return count === 0 ? [] : [texts.leftOutKinds[kind](count)];
  });
  return kinds.length === 0 ? "" : texts.leftOut(kinds.join(", "));
}

/** What several requests do, in one sentence. It is made of their effects, and has nothing of what an agent says. */
export function combinedSentence(payloads: readonly Payload[]): string {
  const runs = payloads.filter(({ kind }) => kind === "command" || kind === "task");
  const patches = payloads.filter((payload) => payload.kind === "patch");
  const others = payloads.length - runs.length - patches.length;
  const [first] = payloads;
  if (first !== undefined && payloads.length === 1) return sentenceOf(first);
  const parts = [
    ...effectsPart(runs),
    ...(patches.length === 0 ? [] : [changesPart(patches)]),
    ...(others === 0 ? [] : [texts.plans(others)]),
  ];
  return texts.inOneSentence(parts);
}

/** What commands do together. One in which nothing was found is counted. */
function effectsPart(runs: readonly Payload[]): string[] {
  const [first] = runs;
  if (first === undefined) return [];
  const effects: readonly Effect[] = runs.flatMap((payload) => payload.effects ?? []);
  const silent = runs.filter((payload) => (payload.effects ?? []).length === 0).length;
  const found = effects.length === 0 ? [] : [sentenceOf({ ...first, effects })];
  return silent === 0 ? found : [...found, texts.commands(silent)];
}

function changesPart(patches: readonly Patch[]): string {
  const files = patches.flatMap((patch) => patch.files);
  const { added, removed } = patchLines({ files });
  return texts.changesFiles(new Set(files.map(({ path }) => path)).size, added, removed);
}
