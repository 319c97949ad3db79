#!/usr/bin/env bash
# Real hosts of agents with a scripted model, Countersign's hook in between, and a person who answers: commands, files, plans.
# Ends with 0 only if every step held. Installs the hosts first, once. Usage: demo/agents.sh [HOST ...]
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
python3 tests/agents/install.py
cargo build --quiet --locked --workspace --bins --examples
PATH=$(realpath "$target/debug"):$PATH exec python3 demo/agents.py "$@"
