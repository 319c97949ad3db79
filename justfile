# Commands for developers. `just` lists them.

set shell := ["bash", "-euo", "pipefail", "-c"]

# Where `just setup` puts the tools that a machine lacks.
cache := env("COUNTERSIGN_CACHE", env("HOME") / ".cache/countersign")
export PATH := cache / "tools/bin" + ":" + cache / "venv/bin" + ":" + env("PATH")

# List the commands.
default:
    @just --list --unsorted

# What to run before every commit: format, lints, tests.
check: fmt-check clippy test

# Format everything.
fmt:
    cargo fmt --all
    cargo fmt --manifest-path fuzz/Cargo.toml

# Say what is not formatted.
fmt-check:
    cargo fmt --all --check
    cargo fmt --manifest-path fuzz/Cargo.toml --check

# Lints, warnings denied.
clippy:
    cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

# All tests, or those whose names match: just test withdrawn
test *filter:
    cargo nextest run --workspace --locked --cargo-quiet -E 'not binary(api) & not binary(conformance)' {{ filter }}
    cargo test --workspace --locked --quiet --test conformance --test api -- --test-threads 4 {{ filter }}
    cargo test --workspace --doc --locked --quiet

# Fuzz the targets for some seconds each: just fuzz 60 envelope
fuzz seconds="10" *targets:
    fuzz/run {{ seconds }} {{ targets }}

# Canonical form against other implementations: just differential 1000000
differential count="100000" seed="1":
    source .ci/setup && tests/differential/run {{ count }} {{ seed }}

# Time and memory of reading 2 MB, beside serde_json::Value.
parse-cost:
    cargo run --quiet --release --locked -p countersign-wire --example parse_cost

# The documentation of the crates.
docs:
    cargo doc --workspace --no-deps --locked --open

# All documents as a website, in target/site.
site:
    docs/site/build target/site

# Install what the tests need and this machine lacks.
setup:
    source .ci/setup

# Everything that decides whether a change lands.
ci:
    .ci/run

# What takes hours: just long differential
long *steps:
    .ci/long {{ steps }}
