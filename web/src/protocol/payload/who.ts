// Who asks, and why: what the machine knows, and what the agent says about itself.

import type { Payload } from "./index.ts";

/** Who asks, and why. Absent is what the payload does not say. All of it is untrusted: show it with `visible`. */
export interface Who {
  /** What people call the agent, such as "Claude Code". */
  readonly agent?: string;
  readonly project?: string;
  readonly branch?: string;
  /** What its person asked for. */
  readonly task?: string;
  /** The agent's own words about the call. Nobody has checked them: they stand in a box of their own that says so. */
  readonly words?: string;
}

/** A longer name is shortened: it is a name, and no place to write a page. */
const MAX_NAME = 80;

/** A longer text is shortened. All of it is in the payload. */
const MAX_TEXT = 1000;

/** Who asks, and why. Older payloads say nothing of it. */
export function whoAsks({ asking }: Payload): Who {
  const shown = (text: string | undefined, most: number): string | undefined => {
    if (text === undefined) return undefined;
    const characters = [...text];
    const kept = characters.slice(0, most).join("");
    return characters.length > most ? `${kept}…` : kept;
  };
  const who = {
    agent: shown(asking.agent, MAX_NAME),
    project: shown(asking.project, MAX_NAME),
    branch: shown(asking.branch, MAX_NAME),
    task: shown(asking.task, MAX_TEXT),
    words: shown(asking.words, MAX_TEXT),
  };
  return Object.fromEntries(Object.entries(who).filter(([, text]) => text !== undefined));
}
