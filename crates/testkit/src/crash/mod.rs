//! Crash tests: processes that are killed while they commit, and what the database must contain afterwards.
//!
//! A test runs itself again as a child process that writes ([`child_task`], [`write_until_killed`]), kills the child
//! ([`run_child_and_kill`]) and checks with a [`CrashLog`] that every acknowledged change is in the database.

mod changes;
mod child;
mod crash_log;
mod report;
mod writers;

use std::env;

pub use changes::first_id;
pub use child::{ChildTask, child_task, run_child_and_kill};
pub use crash_log::{CrashLog, verify};
pub use report::{Acked, CommitReport};
pub use writers::{write, write_until_errors, write_until_killed};

/// Environment variable that overrides a test's number of rounds.
const ROUNDS: &str = "CRASH_ROUNDS";

/// How many rounds to run: `CRASH_ROUNDS`, else `default`.
pub fn rounds(default: u64) -> u64 {
    env::var(ROUNDS).map_or(default, |rounds| rounds.parse().expect("CRASH_ROUNDS is a number"))
}

/// How many acknowledgements a round waits for before it kills: sometimes few, sometimes so many that the store
/// has cleaned up (for example with a checkpoint) in between.
pub fn acks_before_kill(round: u64) -> usize {
    usize::try_from(20 + (round * 37) % 400).expect("a small number")
}
