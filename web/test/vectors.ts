// Reads the test vectors, and refuses to skip a case: whoever takes a case must know all of its members.

import { readdirSync, readFileSync } from "node:fs";

import { expect } from "vitest";

const folder = new URL("../../vectors/", import.meta.url);

export type Case = Readonly<Record<string, unknown>>;

/** Every file of vectors, without its ending. */
export function files(): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .map((name) => name.replace(/\.json$/, ""))
    .sort();
}

export function document(name: string): Case {
  return JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8")) as Case;
}

/** Checks that a case is of a known kind: it has these members, perhaps those, and no others. */
export function known(tested: Case, required: readonly string[], optional: readonly string[] = []): void {
  const names = Object.keys(tested);
  const missing = required.filter((name) => !names.includes(name));
  const unknown = names.filter((name) => !required.includes(name) && !optional.includes(name));
  expect({ missing, unknown }, `a case of an unknown kind: ${JSON.stringify(tested).slice(0, 200)}`).toEqual({
    missing: [],
    unknown: [],
  });
}

export function cases(document_: Case, list: string): Case[] {
  const found = document_[list];
  if (!Array.isArray(found) || found.length === 0) throw new Error(`no cases in ${list}`);
  return found as Case[];
}

export function textOf(tested: Case, name: string): string {
  const value = tested[name];
  if (typeof value !== "string") throw new Error(`${name} is not a text in ${JSON.stringify(tested).slice(0, 200)}`);
  return value;
}
