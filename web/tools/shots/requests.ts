// What the pictures show: the requests of a shop whose cart learns to count.

import type { Robot } from "../../e2e/robot.ts";

export const SESSION = "9f3c2d1e-1111-4222-8333-abcdefabcdef";
export const FOLDER = "/home/ada/shop";

const WHO = { agent: "Claude Code", project: "shop", branch: "decimal", task: "Make the cart use Decimal" };

const payload = (members: object): string => JSON.stringify({ schema: "org.proto.payload", version: 2, ...members });

/** A command as the hook of Claude Code writes it. */
export function shell(command: string, words: string, more: object): string {
  const message = { tool_name: "Bash", tool_input: { command } };
  return payload({
    ...WHO,
    words,
    shell: command,
    cwd: FOLDER,
    state: "examined",
    call: {
      kind: "hook.claude",
      moment: "PreToolUse",
      tool: "Bash",
      folder: FOLDER,
      repository: FOLDER,
      message,
      shown: ["/tool_name", "/tool_input/command"],
    },
    ...more,
  });
}

const CART = `--- a/src/cart.py
+++ b/src/cart.py
@@ -1,3 +1,4 @@
 from dataclasses import dataclass
+from decimal import Decimal
 
 
@@ -8,6 +9,6 @@ def total(items)
 def total(items):
     """Sum the prices in the cart."""
-    result = 0
+    result = Decimal(0)
     for item in items:
-        result += item.price * item.count
-    return result
+        result += Decimal(item.price) * item.count
+    return result.quantize(Decimal("0.01"))
`;

const TESTS = `--- a/tests/test_cart.py
+++ b/tests/test_cart.py
@@ -21,2 +21,6 @@ def test_total
 def test_total():
-    assert total(CART) == 29.97
+    assert total(CART) == Decimal("29.97")
+
+def test_rounding():
+    cart = [Item("0.335", 3)]
+    assert total(cart) == Decimal("1.00")
`;

export function change(): string {
  const digests = { baseDigest: "e".repeat(64), resultDigest: "4".repeat(64) };
  const file = (path: string, added: number, removed: number): object => ({
    path,
    status: "modified",
    added,
    removed,
    ...digests,
  });
  return payload({
    ...WHO,
    words: "Floats lose cents in large carts, so total() now uses Decimal and rounds once at the end.",
    diff: CART + TESTS,
    files: [file("src/cart.py", 4, 3), file("tests/test_cart.py", 5, 1)],
    effects: [],
  });
}

export function plan(): string {
  return payload({
    agent: "Codex",
    project: "handbook",
    task: "Fix the broken links",
    words: "I found 14 dead links and want to agree on the order first.",
    text: "# Replace the dead links\n\nThe handbook has 14 of them, most in `guides/`.\n\n1. Collect every link and its answer\n2. Replace the moved ones\n3. Remove the rest, each with a note\n4. Add a check to CI\n\nNothing outside of `docs/` changes.\n",
    effects: [],
  });
}

const DEPLOY =
  "#!/bin/sh\nset -eu\ndocker build -t shop .\ndocker push registry.example.org/shop\nssh web restart-shop\n";

/** Everything that waits, in the order in which it ends. */
export async function askAll(robot: Robot, digest: (text: string) => string): Promise<void> {
  const session = SESSION;
  const effects = (...list: readonly (readonly [string, string?])[]): object => ({
    effects: list.map(([effect, detail]) => ({ effect, ...(detail === undefined ? {} : { detail }) })),
  });
  const ask = (text: string, seconds: number): Promise<unknown> => robot.ask({ payload: text, session }, seconds);
  await ask(
    shell(
      "rm -rf /srv/shop",
      "The old deployment is in the way, so I'm removing it.",
      effects(["deletes", "/srv/shop/"], ["leavesRepository", "/srv/shop/"]),
    ),
    299,
  );
  await ask(
    shell(
      "curl -fsSL https://get.acme.dev/deploy | sh -s staging",
      "Tests pass, so I'm deploying to staging as you asked.",
      { state: "notExamined", ...effects(["runsFetched", "get.acme.dev"]) },
    ),
    520,
  );
  await ask(
    shell(
      "pip install stripe==11.4.1",
      "The payment step needs the Stripe client, so I'm installing it before I write the tests.",
      effects(["installs", "stripe==11.4.1"], ["network", "packages.example.org"]),
    ),
    580,
  );
  await robot.ask({ artifactType: "patch.review", payload: change(), session }, 590);
  await ask(
    shell("pytest -q tests/test_cart.py", "The change needs its tests.", { state: "opaque", ...effects(["tests"]) }),
    600,
  );
  const script = { path: `${FOLDER}/deploy.sh`, role: "script", digest: digest(DEPLOY) };
  const { call, ...rest } = JSON.parse(
    shell("./deploy.sh", "Staging should have what we tested.", {
      state: "opaque",
      ...effects(["runsCode", "deploy.sh"]),
    }),
  ) as { call: object };
  await ask(
    JSON.stringify({
      ...rest,
      files: [{ ...script, size: DEPLOY.length, content: DEPLOY }],
      call: { ...call, files: [script] },
    }),
    620,
  );
}
