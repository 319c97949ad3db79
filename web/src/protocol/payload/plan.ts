// The payload of `plan.review` and `task.review`: what an agent intends.

import { list, type Members, nonEmpty } from "../members.ts";
import { visible } from "../visible.ts";

/** A plan or a task before it begins. */
export interface Plan {
  readonly kind: "plan" | "task";
  /** All of it, in Markdown. */
  readonly text: string;
  readonly steps: readonly string[];
}

/** Takes the members after the marker. */
export function readPlan(kind: Plan["kind"], members: Members): Plan {
  return {
    kind,
    text: members.required("text", nonEmpty),
    steps: members.optional("steps", list(nonEmpty)) ?? [],
  };
}

/** The first heading, else the first step, else the first line with text. */
export function planHeadline({ text, steps }: Plan): string {
  const lines = text.split("\n").map((line) => line.replace(/\r$/, ""));
  const heading = lines.map(headingOf).find((found) => found !== undefined);
  return visible(heading ?? steps[0] ?? lines.map(trim).find((line) => line !== "") ?? "");
}

/** The text of a Markdown heading that begins with number signs. */
function headingOf(line: string): string | undefined {
  const [, rest] = /^#{1,6} (.*)$/s.exec(line) ?? [];
  const text = rest === undefined ? "" : trim(trim(rest).replace(/#+$/, ""));
  return text === "" ? undefined : text;
}

function trim(text: string): string {
  return text.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, "");
}
