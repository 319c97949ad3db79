#!/usr/bin/env bash
# A gateway under a name of its own, which gets its certificate by itself: reached by a browser, by the tool, and with a
# certificate of a client.
#
# Usage: demo/reach.sh FOLDER_WITH_THE_PROGRAMS
#
# pebble, Debian's authority for tests, issues. `countersign up --phone --name gateway.test` starts the gateway from an empty home; its
# certificate is ordered by TLS-ALPN-01. Chromium trusts pebble's root, opens https://gateway.test with the one code, joins, pairs
# and approves a command. A second home joins and pairs over TLS, and approves one in its terminal. Then the gateway accepts
# certificates of clients: curl reads the inbox with one; without it, with one of another authority and after `keys revoke`
# it does not. Ends with 0 only if every step held.
#
# It runs in a network of its own, in which gateway.test is 127.0.0.2 and port 443 is free, and changes nothing outside of it.
# That needs no root, but user namespaces. The programs are built after web/build, so that the gateway serves the page. Needs
# Node, Chromium, pebble, script(1), openssl, certutil, curl, ip(8) and unshare(1); packages are installed as
# web/package-lock.json says.
set -euo pipefail
programs=$(realpath "${1:?usage: demo/reach.sh FOLDER_WITH_THE_PROGRAMS}")
PATH=$PATH:/usr/sbin:/sbin
cd "$(dirname "$0")/../web"
for program in "$programs/countersign" "$programs/countersign-gateway" "${CHROMIUM:-/usr/bin/chromium}" \
  node pebble pebble-challtestsrv script openssl certutil curl ip unshare; do
  command -v "$program" > /dev/null || { echo "missing: $program" >&2; exit 1; }
done
if ! refused=$(unshare --map-root-user --mount --net ip link set lo up 2>&1); then
  echo "this machine does not allow user namespaces, which a network of its own needs: $refused" >&2
  echo "allow them (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), or use another machine" >&2
  exit 1
fi
[ -d node_modules ] || npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
hosts=$(mktemp)
trap 'rm -f "$hosts"' EXIT
printf '127.0.0.1 localhost\n127.0.0.2 gateway.test\n' > "$hosts"
COUNTERSIGN_BIN="$programs" COUNTERSIGN_OWN_NETWORK=1 unshare --map-root-user --mount --net bash -euc '
  ip link set lo up
  mount --bind "$0" /etc/hosts
  exec npx vitest run --config vitest.e2e.config.ts --reporter=verbose --bail=1 e2e/reach.test.ts
' "$hosts"
