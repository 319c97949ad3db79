#!/usr/bin/env bash
# From `countersign exec` to the page on a phone and back: a real gateway, the real tool and a real browser.
#
# Usage: demo/page.sh FOLDER_WITH_THE_PROGRAMS [FOLDER_FOR_SCREENSHOTS]
#
# First the whole story from an empty home: `countersign up --phone` behind a proxy with a certificate of a local authority, on
# an address that is not loopback; one code is scanned, the phone joins and pairs with one tap, the machine confirms it, and a
# command is approved. It prints how many commands and taps that took, and how long. Then a person joins with an invitation, pairs
# by the link that the tool shows, approves a command, rejects one with words, holds
# to approve a dangerous one, sees one being taken back, and rejects `git push --force`, which is on the picture of the README. What
# ran is looked at on the machine. Ends with 0 only if every step held. The programs are built after web/build, so that the
# gateway serves the page. Needs Node, Chromium, script(1), openssl and certutil; packages are installed as web/package-lock.json says.
set -euo pipefail
programs=$(realpath "${1:?usage: demo/page.sh FOLDER_WITH_THE_PROGRAMS [FOLDER_FOR_SCREENSHOTS]}")
shots=$(realpath -m "${2:-$(mktemp -d)}")
cd "$(dirname "$0")/../web"
[ -d node_modules ] || npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
[ -f ../crates/server/page/dist/index.html ] || { echo "the gateway has no page: run web/build, then build the programs" >&2; exit 1; }
rm -f "$shots"/*.png
COUNTERSIGN_BIN="$programs" COUNTERSIGN_SHOTS="$shots" npx vitest run --config vitest.e2e.config.ts --reporter=verbose e2e/connect.test.ts e2e/first.test.ts e2e/force.test.ts
for name in connect connected join recovery-code review-command timeline words dangerous inbox taken-back force-push force-push-phone-light force-push-phone-dark; do
  [ -s "$shots/$name.png" ] || { echo "no screenshot $name.png" >&2; exit 1; }
done
echo "Screenshots: $shots"
