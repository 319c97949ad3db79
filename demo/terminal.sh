#!/usr/bin/env bash
# Both ends in real terminals, from an empty home: asks, approves, rejects, and lets things go wrong.
# Ends with 0 only if every step held. Usage: demo/terminal.sh [--transcript FILE]
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --locked --workspace --bins --examples
PATH=$(realpath "$target/debug"):$PATH exec python3 demo/terminal.py "$@"
