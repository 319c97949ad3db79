// What axe finds on the screen that a person has before them.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import type { Person } from "./browser.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** What a screen reader or a keyboard would stumble over. */
export async function axe(person: Person): Promise<string[]> {
  const devtools = await person.context.newCDPSession(person.page);
  // The page's own rules forbid foreign code; the tool of the browser does not ask them.
  await devtools.send("Runtime.evaluate", { expression: AXE });
  const { result } = await devtools.send("Runtime.evaluate", {
    expression: "axe.run(document).then((found) => JSON.stringify(found.violations))",
    awaitPromise: true,
    returnByValue: true,
  });
  await devtools.detach();
  const violations = JSON.parse(String(result.value)) as Violation[];
  return violations.map(
    ({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`,
  );
}
