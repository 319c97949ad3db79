// What a request does to the world, as the enforcer derives it; never the model.

import table from "../../../../schemas/sentences.json" with { type: "json" };
import { Members, nonEmpty, type Read, word } from "../members.ts";

/** The kinds of effects, in the words of a chip. The list is closed. */
export const EFFECT_PHRASES = {
  deletes: "deletes",
  overwrites: "overwrites",
  leavesRepository: "leaves the repository",
  network: "network",
  publishes: "publishes",
  rewritesHistory: "rewrites history",
  touchesSecrets: "touches secrets",
  escalatesPrivileges: "escalates privileges",
  loadsCode: "loads other code",
  destroysInfrastructure: "destroys infrastructure",
  dropsTables: "deletes data",
  deletesBranches: "deletes branches",
  pushes: "pushes",
  sends: "sends data",
  deploys: "changes a service",
  runsFetched: "runs what it fetches",
  runsInput: "runs what is printed",
  installs: "installs",
  tests: "runs tests",
  builds: "builds",
  checks: "checks code",
  runsCode: "runs this project's code",
  runsGiven: "runs code in the command",
  runsProgram: "runs",
  commits: "commits",
  changesModes: "changes permissions",
  readsOutside: "reads outside the repository",
  reads: "reads",
  runs: "runs",
} as const;

/** The kind of an effect. */
export type EffectKind = keyof typeof EFFECT_PHRASES;

/** One effect, perhaps with what it is on. */
export interface Effect {
  readonly effect: EffectKind;
  readonly detail: string | undefined;
}

const DANGEROUS: ReadonlySet<string> = new Set(
  table.effects.filter(({ weight }) => weight === "danger").map(({ effect }) => effect),
);

/**
 * Whether a person is asked each time: it can't be undone, or reaches what the agent should not. A connection to another
 * machine alone is not dangerous.
 */
export function isDangerous(effect: EffectKind): boolean {
  return DANGEROUS.has(effect);
}

const KINDS = Object.keys(EFFECT_PHRASES) as EffectKind[];

/** Reads one effect. */
export const readEffect: Read<Effect> = (value, at) => {
  const members = new Members(value, at);
  const effect = { effect: members.required("effect", word(KINDS)), detail: members.optional("detail", nonEmpty) };
  members.close();
  return effect;
};
