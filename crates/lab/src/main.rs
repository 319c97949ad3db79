//! Measures what the documents claim, so that every published figure has the command that makes it.
//!
//! | to find | look in |
//! |---|---|
//! | what is measured against what, and in which order | `commits.rs` |
//! | what a commit holds | `workload.rs` |
//! | how many commits are kept in flight and timed | `load.rs`, `stopwatch.rs` |
//! | whether the machine was idle | `cpu.rs` |
//! | what comes out | `report.rs`, `table.rs` |

mod commits;
mod cpu;
mod load;
mod report;
mod stopwatch;
mod table;
mod workload;

use std::{
    error::Error,
    io::{self, Write as _},
};

use clap::{Args, Parser, Subcommand};

use report::Report;

/// Measures what Countersign's documents claim.
///
/// Machines are noisy: a figure counts only beside its baseline of the same run, and only when little else
/// was running. Build with --release.
#[derive(Debug, Parser)]
#[command(name = "countersign-lab")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure one thing against its baseline.
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Durable commits a second with batching and without it, on both stores.
    ///
    /// Takes turns in one run: SQLite on, SQLite off, PostgreSQL on, PostgreSQL off, PostgreSQL off with
    /// eight writers, first submitting, then deciding what was submitted; and all of that again, as many
    /// times as --rounds says. The data is new, in a temporary folder; PostgreSQL is a private server from
    /// Debian's package, with fsync on.
    ///
    /// A rate is the median of its rounds, a ratio the median of the rounds' ratios; p50 and p99 are over
    /// the commits of all rounds. `foreign` is the share of the machine's CPU that went to others
    /// meanwhile: above 10 % or so, run it again. Progress goes to stderr, the result to stdout.
    Commits(CommitsArgs),
}

#[derive(Debug, Clone, Args)]
struct CommitsArgs {
    /// Length of one stretch: one variant in one round.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Changes that wait for their commit at any time, each from a caller of its own.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    in_flight: u64,
    /// How often every variant has its turn.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    rounds: u64,
    /// Mailboxes that submissions are delivered to. Fewer mean more waiting for the same counters.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    approvers: u64,
    /// Mailboxes that decisions are delivered to.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    enforcers: u64,
    /// Print one JSON object with all raw figures instead of the table. Its `ratio` is PostgreSQL's
    /// submissions, on divided by off, with as many writers.
    #[arg(long)]
    json: bool,
}

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let Command::Bench(Bench::Commits(args)) = Cli::parse().command;
    let stretches = commits::run(&args)?;
    let report = Report::new(&args, stretches);
    let text = if args.json { serde_json::to_string(&report)? } else { table::write(&report) };
    writeln!(io::stdout(), "{text}")?;
    Ok(())
}

/// What goes on, for whoever waits. That nobody reads it is no fault.
fn tell(progress: &str) {
    let _ = writeln!(io::stderr(), "{progress}");
}
