// The requests of the inbox by task: what a group is called, and in which order groups are.

import { oneLine, visible, whoAsks } from "../protocol/index.ts";
import { texts } from "../texts.ts";
import type { Card } from "./inbox.ts";

/** Who asks, in words that can be shown. */
export interface Asker {
  /** What the agent works on; what else is known, if nobody says. */
  readonly task: string;
  readonly agent: string | undefined;
  readonly project: string | undefined;
  readonly branch: string | undefined;
  readonly machine: string;
  /** Whether the machine is only what the gateway says. */
  readonly isUnproven?: boolean;
  /** The agent's own words about this request. Nobody has checked them. */
  readonly words: string | undefined;
  readonly session: string | undefined;
}

/** The requests of one task. */
export interface Group {
  readonly key: string;
  readonly asker: Asker;
  readonly cards: readonly Card[];
}

const time = (millis: number): string => new Date(millis).toTimeString().slice(0, 5);

const line = (text: string | undefined): string | undefined => (text === undefined ? undefined : oneLine(text));

/** Who asks for what is on a card; `undefined` if it could not be opened. */
export function askerOf({ request, payload }: Card): Asker | undefined {
  if (request === undefined || payload === undefined) return undefined;
  const who = whoAsks(payload);
  const repository = request.repoName?.split("/").at(-1);
  const project = line(who.project ?? repository);
  const untitled = request.session === undefined ? undefined : texts.untitled(time(request.createdAt.millis));
  return {
    task: line(who.task) ?? untitled ?? texts.noTask,
    agent: line(who.agent),
    project,
    branch: line(who.branch),
    machine: visible(request.enforcerId),
    words: who.words,
    session: request.session,
  };
}

/** The cards that could be opened, by task, in their order: the group of the first one first. */
export function groupsOf(cards: readonly Card[]): Group[] {
  const groups = new Map<string, { asker: Asker; cards: Card[] }>();
  for (const card of cards) {
    const asker = askerOf(card);
    if (asker === undefined) continue;
    const { machine, session, task, agent, project } = asker;
    const key = JSON.stringify([machine, session ?? [task, agent, project]]);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { asker, cards: [card] });
    else known.cards.push(card);
  }
  return [...groups].map(([key, group]) => ({ key, ...group }));
}

/** Two letters for an agent. */
export function initials(agent: string | undefined): string {
  const words = (agent ?? "").match(/[A-Za-z0-9]+/g) ?? [];
  const [first = "", second] = words;
  return second === undefined ? first.slice(0, 2) : `${first.slice(0, 1)}${second.slice(0, 1)}`.toUpperCase();
}
