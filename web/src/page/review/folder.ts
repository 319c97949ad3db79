// Where a command runs and where its files are, as people say it: by the project, if it is inside of one.

import type { PayloadCall } from "../../protocol/index.ts";

/** A path by the name of its project, such as `shop/src`; the path itself if it is not inside of the project. */
export function inProject(path: string, call: PayloadCall | undefined): string {
  const root = call?.repository;
  const name = root?.split("/").at(-1) ?? "";
  if (root === undefined || name === "" || hasSteps(path)) return path;
  if (path === root) return name;
  return path.startsWith(`${root}/`) ? `${name}/${path.slice(root.length + 1)}` : path;
}

/** A path by its place in the project, such as `src/cart.py`; the path itself if it is not inside of it. */
export function belowProject(path: string, call: PayloadCall | undefined): string {
  const root = call?.repository;
  if (root === undefined || root === "/" || hasSteps(path) || !path.startsWith(`${root}/`)) return path;
  return path.slice(root.length + 1);
}

/** Whether a path goes up or stays, so that it may lead somewhere else than it seems. */
function hasSteps(path: string): boolean {
  return path.split("/").some((step) => step === ".." || step === ".");
}
