//! Measures what the documents claim, so that every published figure has the command that makes it.
//!
//! | to find | look in |
//! |---|---|
//! | what is measured against what, and in which order | `commits.rs` |
//! | what a commit holds | `workload.rs` |
//! | how many commits are kept in flight and timed | `load.rs`, `stopwatch.rs` |
//! | whether the machine was idle | `cpu.rs` |
//! | what comes out | `report.rs`, `table.rs`, `figures.rs` |
//! | held channels beside Nchan's | `channels/` |
//! | from a decision to its delivery | `latency/` |
//! | the servers and what talks to them | `servers/`, `clients/` |
//! | the push path without a disk | `memory_store.rs`, `servers/in_memory.rs` |

mod args;
mod channels;
mod clients;
mod commits;
mod cpu;
mod figures;
mod latency;
mod load;
mod memory_mailboxes;
mod memory_store;
mod report;
mod servers;
mod stopwatch;
mod table;
mod workload;

use std::{
    error::Error,
    io::{self, Write as _},
};

use clap::{Parser, Subcommand};

use args::{ChannelsArgs, CommitsArgs, LatencyArgs};

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
    /// A gateway for `bench channels`: what it keeps is in memory only.
    #[command(hide = true)]
    ServeInMemory,
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
    /// Held channels beside those of Nchan: memory while idle, messages a second, latency.
    ///
    /// Takes turns in one run, each turn on a freshly started server. Memory: --channels idle channels of each
    /// kind, one identity each; resident bytes after less those before. Messages: one is a decision that is
    /// posted until its enforcer's channel has it, over a gateway whose store is in memory, or whatever is
    /// posted to Nchan until its subscriber has it; first as fast as eight publishers go, then at --rate.
    ///
    /// Needs Debian's packages nginx and libnginx-mod-nchan; a private one is started on the loopback. Figures
    /// are medians of the rounds. Progress goes to stderr, the result to stdout.
    Channels(ChannelsArgs),
    /// From just before a decision is posted to its arrival at the enforcer's WebSocket, on one node.
    ///
    /// Takes turns in one run with the least that it could take: one bare durable commit of the same kind on the
    /// same store, and one round trip over the loopback with as many bytes. Both at --rate exchanges a second,
    /// each submitted first. Progress goes to stderr, the result to stdout.
    Latency(LatencyArgs),
}

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let bench = match Cli::parse().command {
        Command::Bench(bench) => bench,
        Command::ServeInMemory => return servers::in_memory::run(),
    };
    let text = match bench {
        Bench::Commits(args) => {
            let report = report::Report::new(&args, commits::run(&args)?);
            if args.json { serde_json::to_string(&report)? } else { table::write(&report) }
        }
        Bench::Channels(args) => {
            let report = channels::run(&args)?;
            if args.json { serde_json::to_string(&report)? } else { report.table() }
        }
        Bench::Latency(args) => {
            let report = latency::run(&args)?;
            if args.json { serde_json::to_string(&report)? } else { report.table() }
        }
    };
    writeln!(io::stdout(), "{text}")?;
    Ok(())
}

/// What goes on, for whoever waits. That nobody reads it is no fault.
fn tell(progress: &str) {
    let _ = writeln!(io::stderr(), "{progress}");
}
