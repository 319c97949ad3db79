//! What can be asked for on the command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

/// For [`crate::commits`].
#[derive(Debug, Clone, Args)]
pub(crate) struct CommitsArgs {
    /// Length of one stretch: one variant in one round.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) seconds: u64,
    /// Changes that wait for their commit at any time, each from a caller of its own.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub(crate) in_flight: u64,
    /// How often every variant has its turn.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) rounds: u64,
    /// Mailboxes that submissions are delivered to. Fewer mean more waiting for the same counters.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) approvers: u64,
    /// Mailboxes that decisions are delivered to.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) enforcers: u64,
    /// Print one JSON object with all raw figures instead of the table. Its `ratio` is PostgreSQL's
    /// submissions, on divided by off, with as many writers.
    #[arg(long)]
    pub(crate) json: bool,
}

/// For [`crate::channels`].
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct ChannelsArgs {
    /// Length of one stretch of messages. Longer ones would meet what is told again.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=8))]
    pub(crate) seconds: u64,
    /// Idle channels of each kind whose memory is measured.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=19_000))]
    pub(crate) channels: u64,
    /// Channels that messages are pushed over.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) subscribers: u64,
    /// How often every stretch has its turn.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    /// Messages a second for which latencies are compared, if both can.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    pub(crate) rate: u64,
    /// Exchanges to submit before a stretch, for each of its seconds. One that runs out ends early.
    #[arg(long, value_name = "N", default_value_t = 16_000, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    pub(crate) prepared_per_second: u64,
    /// The gateway's program, if it is not beside this one.
    #[arg(long, value_name = "PATH")]
    pub(crate) gateway: Option<PathBuf>,
    /// Publish by deciding: each message is then a whole decision over `POST /v1/decision`, not the push path alone
    #[arg(long)]
    pub(crate) whole_decisions: bool,

    /// Measure memory only.
    #[arg(long, conflicts_with = "only_push")]
    pub(crate) only_memory: bool,
    /// Measure messages only.
    #[arg(long)]
    pub(crate) only_push: bool,
    /// Print one JSON object with all raw figures instead of the tables. Its `ratio` is that of the memory of
    /// idle channels, ours divided by Nchan's, where it is worst.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a gateway keeps what it must not lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoreKind {
    Sqlite,
    Postgres,
}

/// For [`crate::latency`].
#[derive(Debug, Clone, Args)]
pub(crate) struct LatencyArgs {
    /// Length of one stretch. Longer ones would meet what is told again.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=8))]
    pub(crate) seconds: u64,
    /// How often both have their turn.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    /// Exchanges a second, if they hold; else as many as do.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    pub(crate) rate: u64,
    /// Enforcers, each with a WebSocket.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) enforcers: u64,
    /// The store of the gateway, and of the bare commit.
    #[arg(long, value_enum, default_value_t = StoreKind::Sqlite)]
    pub(crate) store: StoreKind,
    /// The gateway's program, if it is not beside this one.
    #[arg(long, value_name = "PATH")]
    pub(crate) gateway: Option<PathBuf>,
    /// Print one JSON object with all raw figures instead of the table. Its `ratio` is p99, ours divided by the
    /// baseline's.
    #[arg(long)]
    pub(crate) json: bool,
}
