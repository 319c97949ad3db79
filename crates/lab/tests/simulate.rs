//! `simulate`: seeds pass, a run repeats exactly, and planted bugs are caught.

#![expect(clippy::unwrap_used, reason = "a test fails where it can't go on")]

use std::process::{Command, Output};

fn simulate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_countersign-lab")).arg("simulate").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_hundred_seeds_violate_nothing_and_try_every_fault() {
    let run = simulate(&["--seeds", "100", "--json"]);
    assert!(run.status.success(), "{}", text(&run.stdout));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["seeds"], 100);
    for what in [
        "commits undone by a failover",
        "decisions acknowledged",
        "exchanges delivered",
        "exchanges expired",
        "exchanges withdrawn",
        "failovers",
        "hand-overs between nodes",
        "of these again on the same channel",
        "rings lost",
        "unknown outcomes",
    ] {
        assert!(report["counts"][what].as_u64() > Some(10), "{what}: {}", report["counts"]);
    }
}

#[test]
fn a_seed_always_takes_the_same_steps() {
    for seed in ["3", "44", "57"] {
        let [once, again] = [(); 2].map(|()| text(&simulate(&["--seed", seed]).stdout));
        assert!(once.lines().count() > 200, "{once}");
        assert_eq!(once, again, "seed {seed}");
    }
    assert_ne!(simulate(&["--seed", "3"]).stdout, simulate(&["--seed", "4"]).stdout);
}

/// A bug is caught by this invariant, and the seed that is named shows it again.
fn is_caught(bug: &str, invariant: &str) {
    let run = simulate(&["--bug", bug, "--seeds", "400", "--json"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stdout));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let failing = &report["failing"][0];
    assert!(failing["violations"].to_string().contains(invariant), "{failing}");
    let again = simulate(&["--bug", bug, "--seed", &failing["seed"].to_string()]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stdout).contains(invariant));
}

#[test]
fn a_dropped_version_guard_is_caught() {
    is_caught("version-guard", "the state table is kept");
}

#[test]
fn a_journal_that_is_written_after_the_act_is_caught() {
    is_caught("late-journal", "a decision is acted on at most once");
}

#[test]
fn delivery_by_rings_alone_is_caught() {
    // A decision to its enforcer, or a request to its approvers, whichever is missing first.
    is_caught("ring-only", " is delivered to ");
}
