#!/usr/bin/env bash
# What an agent can do about its own gate, tried with real programs: a keeper under an account of its own, agents in the sandbox of
# `countersign run`, and both together. Prints a line for each attempt, with the controls that succeed where nothing protects.
# Ends with 0 only if every line is as docs/boundary.md says.
#
# Usage: sudo demo/boundary.sh FOLDER_WITH_THE_PROGRAMS
#
# Root is for mounts in namespaces of their own, which are gone with it; agents run as ordinary users. Needs bubblewrap, socat, Node
# and Python; installs the agents from npm first, once. Everything stays on the loopback.
set -euo pipefail
programs=$(realpath "${1:?usage: demo/boundary.sh FOLDER_WITH_THE_PROGRAMS}")
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "run it as root: sudo demo/boundary.sh FOLDER" >&2; exit 1; }
for program in "$programs"/countersign{,-hook,-gateway} bwrap socat setpriv unshare node; do
    command -v "$program" > /dev/null || { echo "missing: $program" >&2; exit 1; }
done
python3 tests/agents/install.py
echo "== a keeper under an account of its own, with and without the sandbox"
python3 tests/boundary/account.py "$programs"
echo "== agents in the sandbox, with a keeper of the user"
python3 tests/boundary/run.py "$programs"
