#!/usr/bin/env bash
# A phone that is told while the page is closed: from `countersign exec` to a notification, to a signed answer, and a webhook that
# verifies.
#
# Usage: demo/ring.sh FOLDER_WITH_THE_PROGRAMS
#
# A person joins in Chromium, pairs with a machine and switches notifications on. npm's web-push-testing is the push service; it
# checks who sends, and decrypts. The page is closed, `countersign exec` asks, and the worker shows the notification. One request
# is rejected on the page that a tap opens, one from the notification itself, one is approved; the machine verifies each answer. A
# receiver of webhooks, on the loopback like everything here, checks each signature with nothing but Node. Ends with 0 only if
# every step held.
#
# Chromium without Google's network has no push service, so two ends are played, and nothing here is proof for a phone: the page's
# `PushManager` hands out the subscription of web-push-testing, and what that has decrypted is handed to the worker by the browser's
# protocol for tests. Taps on a notification are events of the test.
#
# The programs are built after web/build, so that the gateway serves the page. Needs Node, Chromium and script(1); packages are
# installed as web/package-lock.json says.
set -euo pipefail
programs=$(realpath "${1:?usage: demo/ring.sh FOLDER_WITH_THE_PROGRAMS}")
cd "$(dirname "$0")/../web"
for program in "$programs/countersign" "$programs/countersign-gateway" "${CHROMIUM:-/usr/bin/chromium}" node script; do
  command -v "$program" > /dev/null || { echo "missing: $program" >&2; exit 1; }
done
[ -d node_modules/web-push-testing ] || npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
COUNTERSIGN_BIN="$programs" exec npx vitest run --config vitest.e2e.config.ts --reporter=verbose --bail=1 e2e/ring.test.ts
