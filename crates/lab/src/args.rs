//! The arguments of the command line.

use std::{fmt, path::PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;

/// Arguments of `bench commits`, see [`crate::commits`].
#[derive(Debug, Clone, Args)]
pub(crate) struct CommitsArgs {
    /// Seconds of one stretch: one variant in one round.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) seconds: u64,
    /// Concurrent commits, each from its own task.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub(crate) in_flight: u64,
    /// How many times to measure each variant.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) rounds: u64,
    /// Mailboxes that submissions are delivered to. Fewer mean more contention for the same counters.
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

/// Arguments of `bench channels`, see [`crate::channels`].
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct ChannelsArgs {
    /// Seconds of one stretch of messages. Longer ones would include redelivered messages.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=8))]
    pub(crate) seconds: u64,
    /// Idle channels of each kind whose memory is measured.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=19_000))]
    pub(crate) channels: u64,
    /// Channels that messages are pushed over.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) subscribers: u64,
    /// How many times to repeat each stretch.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    /// Messages a second at which latencies are compared, if both servers reach it.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    pub(crate) rate: u64,
    /// Exchanges to submit before a stretch, for each of its seconds. A stretch without exchanges left ends early.
    #[arg(long, value_name = "N", default_value_t = 16_000, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    pub(crate) prepared_per_second: u64,
    /// The gateway's program, if it is not in the same folder as this one.
    #[arg(long, value_name = "PATH")]
    pub(crate) gateway: Option<PathBuf>,
    /// Publish by deciding: each message is then a complete decision over `POST /v1/decision`, not the push path alone.
    #[arg(long)]
    pub(crate) whole_decisions: bool,

    /// Measure memory of idle channels only.
    #[arg(long, conflicts_with = "only_push")]
    pub(crate) only_memory: bool,
    /// Measure pushed messages only.
    #[arg(long)]
    pub(crate) only_push: bool,
    /// Print one JSON object with all raw figures instead of the tables. Its `ratio` is our memory of an idle
    /// channel divided by Nchan's, for the channel kind where that is worst.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `bench expiries`, see [`crate::expiries`].
#[derive(Debug, Clone, Args)]
pub(crate) struct ExpiriesArgs {
    /// Exchanges that lapse in one stretch.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub(crate) exchanges: u64,
    /// How many times to measure each stretch.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=20))]
    pub(crate) rounds: u64,
    /// Seconds of one stretch of decisions.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(crate) seconds: u64,
    /// Tenants that the exchanges are in.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) tenants: u64,
    /// Approvers of each tenant, whose mailboxes the exchanges are in.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) approvers: u64,
    /// Concurrent decisions, and concurrent submissions while a stretch is prepared.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub(crate) in_flight: u64,
    /// Print one JSON object with all raw figures instead of the table. Its `ratio` is expiries a second on one node
    /// divided by decisions a second.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The storage engine of a gateway or of a bare commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        })
    }
}

/// Arguments of `bench latency`, see [`crate::latency`].
#[derive(Debug, Clone, Args)]
pub(crate) struct LatencyArgs {
    /// Seconds of one stretch. Longer ones would include redelivered messages.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=8))]
    pub(crate) seconds: u64,
    /// How many times to measure the gateway and the baseline.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    /// Exchanges a second; reduced if the gateway does not sustain them.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    pub(crate) rate: u64,
    /// Enforcers, each with a WebSocket.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) enforcers: u64,
    /// The store of the gateway, and of the bare commit.
    #[arg(long, value_enum, default_value_t = Engine::Sqlite)]
    pub(crate) store: Engine,
    /// The gateway's program, if it is not in the same folder as this one.
    #[arg(long, value_name = "PATH")]
    pub(crate) gateway: Option<PathBuf>,
    /// Print one JSON object with all raw figures instead of the table. Its `ratio` is our p99 divided by
    /// that of the baseline.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `bench client`, see [`crate::client_costs`].
#[derive(Debug, Clone, Args)]
pub(crate) struct ClientArgs {
    /// How many times to measure each operation, ours and bare in turn, and the memory.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    /// KiB of the larger payload; the smaller one has 4. The protocol allows 2,048 with everything around it.
    #[arg(long, value_name = "N", default_value_t = 1_984)]
    pub(crate) large_kib: usize,
    /// KiB of payload in one stretch, which repeats an operation at least once: small ones are lost in the noise.
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    pub(crate) kib: usize,
    /// Print one JSON object with all raw figures instead of the table. Its `ratio` is the largest of the operations' times,
    /// ours divided by bare.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `bench submit`, see [`crate::submit`].
#[derive(Debug, Clone, Args)]
pub(crate) struct SubmitArgs {
    /// Seconds of one stretch.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// How many undisturbed rounds to measure.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    /// Concurrent submissions, each over a connection of its own.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub(crate) in_flight: u64,
    /// Bytes of a submission's ciphertext, and of the content of a bare row.
    #[arg(long, value_name = "N", default_value_t = 4_096)]
    pub(crate) bytes: usize,
    /// Mailboxes that submissions are delivered to.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) approvers: u64,
    /// Enforcers that submit, in turn.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) enforcers: u64,
    /// The gateway's program, if it is not in the same folder as this one.
    #[arg(long, value_name = "PATH")]
    pub(crate) gateway: Option<PathBuf>,
    /// Print one JSON object with all raw figures instead of the table and the plot. Its `ratio` is our submissions a second
    /// divided by those of the better bare INSERT.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `bench exchange`, see [`crate::exchange`].
#[derive(Debug, Clone, Args)]
pub(crate) struct ExchangeArgs {
    /// Seconds of one stretch.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// How many undisturbed rounds to measure.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    /// Concurrent exchanges, each with an enforcer and an approver of its own.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub(crate) in_flight: u64,
    /// Bytes of a submission's ciphertext.
    #[arg(long, value_name = "N", default_value_t = 600)]
    pub(crate) bytes: usize,
    /// The gateway's program, if it is not in the same folder as this one.
    #[arg(long, value_name = "PATH")]
    pub(crate) gateway: Option<PathBuf>,
    /// Print one JSON object with all raw figures instead of the table and the plot. Its `ratio` is our exchanges a second
    /// divided by those of the bare statements one by one, at the better number of clients.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `bench neighbours`, see [`crate::neighbours`].
#[derive(Debug, Clone, Args)]
pub(crate) struct NeighboursArgs {
    /// Seconds of one stretch.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// How many undisturbed rounds to measure.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    /// Concurrent submissions of the loud tenant, all to one approver.
    #[arg(long, value_name = "N", default_value_t = 640, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) loud_in_flight: u64,
    /// Bytes of a submission's ciphertext.
    #[arg(long, value_name = "N", default_value_t = 600)]
    pub(crate) bytes: usize,
    /// The gateway's program, if it is not in the same folder as this one.
    #[arg(long, value_name = "PATH")]
    pub(crate) gateway: Option<PathBuf>,
    /// Print one JSON object with all raw figures instead of the table and the plot. Its `ratio` is the quiet tenant's
    /// submissions a second beside the loud one divided by those alone, its `ratio_of_p99` the same of its p99.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `bench payload`, see [`crate::payload`].
#[derive(Debug, Clone, Args)]
pub(crate) struct PayloadArgs {
    /// Seconds of one stretch.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// How many undisturbed rounds to measure.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    /// Concurrent uploads, and concurrent bare inserts.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) in_flight: u64,
    /// Bytes of a submission's ciphertext, and of a bare row.
    #[arg(long, value_name = "N", default_value_t = 2 * 1_024 * 1_024)]
    pub(crate) bytes: usize,
    /// The gateway's program, if it is not in the same folder as this one.
    #[arg(long, value_name = "PATH")]
    pub(crate) gateway: Option<PathBuf>,
    /// Print one JSON object with all raw figures instead of the table and the plot. Its `ratio` is our bytes a second divided
    /// by those of the bare engine.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `bench cluster`, see [`crate::cluster`].
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    /// Gateway processes on one PostgreSQL.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(4..=64))]
    pub(crate) nodes: u64,
    /// How long the load lasts, in seconds.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// Exchanges a second, on all nodes together.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) rate: u64,
    /// Callers, each with one request at a time.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub(crate) in_flight: u64,
    /// Enforcers, each with a WebSocket on a node other than those that its exchanges are submitted and decided on.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    pub(crate) enforcers: u64,
    /// Bytes of a submission's ciphertext.
    #[arg(long, value_name = "N", default_value_t = 600)]
    pub(crate) bytes: usize,
    /// The gateway's program, if it is not in the same folder as this one.
    #[arg(long, value_name = "PATH")]
    pub(crate) gateway: Option<PathBuf>,
    /// Print one JSON object with all figures instead of the table. Its `ratio` is the fraction of what was accepted that was
    /// found in the end.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `bench nodes`, see [`crate::nodes`].
#[derive(Debug, Clone, Args)]
pub(crate) struct NodesArgs {
    /// Seconds of one stretch. Longer ones would include redelivered messages.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=8))]
    pub(crate) seconds: u64,
    /// How many undisturbed rounds to measure at each rate.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    /// Exchanges a second; may be given several times.
    #[arg(long, value_name = "N", default_values_t = [1_000, 200], value_parser = clap::value_parser!(u64).range(1..=50_000))]
    pub(crate) rate: Vec<u64>,
    /// Enforcers, each with a WebSocket on the node that does not decide.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) enforcers: u64,
    /// The gateway's program, if it is not in the same folder as this one.
    #[arg(long, value_name = "PATH")]
    pub(crate) gateway: Option<PathBuf>,
    /// Print one JSON object with all raw figures instead of the tables and plots. Its `ratio` is our p99 divided by that of the
    /// baseline, at the first rate.
    #[arg(long)]
    pub(crate) json: bool,
}
