// No two files import each other: what the linter says, as biome.json sets it, of small trees.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const WEB = fileURLToPath(new URL("..", import.meta.url));
const SETTINGS = ["biome.json", "tools/inline-types.grit"];

/** What the linter says of files with this content. */
function lint(files: Record<string, string>): { isFine: boolean; said: string } {
  const tree = mkdtempSync(join(tmpdir(), "circles-"));
  onTestFinished(() => rmSync(tree, { recursive: true }));
  for (const name of SETTINGS) cpSync(join(WEB, name), join(tree, name));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, name)), { recursive: true });
    writeFileSync(join(tree, name), content);
  }
  const biome = join(WEB, "node_modules/.bin/biome");
  const { status, stdout, stderr } = spawnSync(biome, ["lint", "src"], { cwd: tree, encoding: "utf8" });
  return { isFine: status === 0, said: stdout + stderr };
}

const SCREEN = 'import { part } from "./parts.ts";\nexport const screen = part;\n';

test.each([
  ["an import", 'import { screen } from "./screen.ts";\nexport const part = () => screen;\n'],
  ["an import of types", 'import type { screen } from "./screen.ts";\nexport const part = (_: typeof screen) => 1;\n'],
  ["a re-export", 'export { screen } from "./screen.ts";\nexport const part = 1;\n'],
  ["a re-export of types", 'export type { screen } from "./screen.ts";\nexport const part = 1;\n'],
  ["a re-export of everything", 'export * from "./screen.ts";\nexport const part = 1;\n'],
  ["an import while it runs", 'export const part = () => import("./screen.ts");\n'],
])("%s in return is refused, and both files are named", (_, parts) => {
  const { isFine, said } = lint({ "src/screen.ts": SCREEN, "src/parts.ts": parts });
  expect(said).toContain("noImportCycles");
  expect(said).toContain("src/screen.ts");
  expect(said).toContain("src/parts.ts");
  expect(isFine).toBe(false);
});

test("a longer circle is refused with every file on its way", () => {
  const { isFine, said } = lint({
    "src/sw.ts": 'import { one } from "./docs/one.tsx";\nexport const worker = one;\n',
    "src/docs/one.tsx": 'import { two } from "../page/two.ts";\nexport const one = () => two;\n',
    "src/page/two.ts": 'import type { worker } from "../sw.ts";\nexport const two: typeof worker | 1 = 1;\n',
  });
  expect(said).toMatch(
    /resolves to src\/docs\/one.tsx\s+... which imports src\/page\/two.ts\s+... which imports src\/sw.ts/,
  );
  expect(isFine).toBe(false);
});

test("a type that is imported where it is used is refused, because it could hide a circle", () => {
  const { isFine, said } = lint({
    "src/screen.ts": "export interface Screen {}\n",
    "src/parts.ts": 'export type Part = import("./screen.ts").Screen;\n',
  });
  expect(said).toContain("Import the type at the top");
  expect(isFine).toBe(false);
});

test("files that import in one direction are fine", () => {
  const { isFine, said } = lint({ "src/screen.ts": SCREEN, "src/parts.ts": "export const part = 1;\n" });
  expect(said).toContain("Checked 2 files");
  expect(isFine).toBe(true);
});
