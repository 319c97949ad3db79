//! The arguments of the benches. What they share stands once; a bench with another default says so above its arguments.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Arg, Args, ValueEnum, value_parser};
use serde::Serialize;

/// Another default than that of most benches.
pub(crate) fn default(value: &'static str) -> impl FnOnce(Arg) -> Arg {
    move |arg| arg.default_value(value)
}

/// The seconds of a stretch that ends before the gateway sends again what nobody acknowledged.
fn until_redelivery(seconds: &'static str) -> impl FnOnce(Arg) -> Arg {
    let help = "Seconds of one stretch. Longer ones would include redelivered messages";
    move |arg| arg.default_value(seconds).value_parser(value_parser!(u64).range(1..=8)).help(help)
}

/// How long and how often to measure.
#[derive(Debug, Clone, Copy, Args, Serialize)]
pub(crate) struct TimingArgs {
    /// Seconds of one stretch: one of what is compared, in one round.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u64).range(1..=3_600))]
    pub(crate) seconds: u64,
    /// How many rounds to measure; one that is measured again because it was disturbed comes on top.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u64).range(1..=1_000))]
    pub(crate) rounds: u64,
}

impl TimingArgs {
    /// The length of one stretch.
    pub(crate) fn length(self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// Where the gateway is.
#[derive(Debug, Clone, Args)]
pub(crate) struct GatewayArgs {
    /// The gateway's program, if it is not in the same folder as this one.
    #[arg(long, value_name = "PATH")]
    gateway: Option<PathBuf>,
}

impl GatewayArgs {
    pub(crate) fn path(&self) -> Option<&Path> {
        self.gateway.as_deref()
    }
}

/// Arguments of `bench exchange` and `bench payload`, and among those of `bench submit`.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) timing: TimingArgs,
    /// How many are under way at once, each over connections of its own.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u64).range(1..=1_024))]
    pub(crate) in_flight: u64,
    /// Bytes of a submission's ciphertext, and of what is inserted in its place.
    #[arg(long, value_name = "N", default_value_t = 600)]
    pub(crate) bytes: usize,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) gateway: GatewayArgs,
}

/// Arguments of `bench submit`, see [`crate::submit`].
#[derive(Debug, Clone, Args, Serialize)]
#[command(mut_arg("bytes", default("4096")))]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) load: LoadArgs,
    /// Mailboxes that submissions are delivered to.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) approvers: u64,
    /// Enforcers that submit, in turn.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) enforcers: u64,
}

/// Arguments of `bench neighbours`, see [`crate::neighbours`].
#[derive(Debug, Clone, Args, Serialize)]
#[command(mut_arg("seconds", default("5")))]
pub(crate) struct NeighboursArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) timing: TimingArgs,
    /// Concurrent submissions of the loud tenant, all to one approver.
    #[arg(long, value_name = "N", default_value_t = 640, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) loud_in_flight: u64,
    /// Bytes of a submission's ciphertext.
    #[arg(long, value_name = "N", default_value_t = 600)]
    pub(crate) bytes: usize,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) gateway: GatewayArgs,
}

/// Arguments of `bench commits`, see [`crate::commits`].
#[derive(Debug, Clone, Args, Serialize)]
#[command(mut_arg("seconds", default("2")))]
pub(crate) struct CommitsArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) timing: TimingArgs,
    /// Concurrent commits, each from its own task.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u64).range(1..=1_024))]
    pub(crate) in_flight: u64,
    /// Mailboxes that submissions are delivered to. Fewer mean more contention for the same counters.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u64).range(1..=100_000))]
    pub(crate) approvers: u64,
    /// Mailboxes that decisions are delivered to.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u64).range(1..=100_000))]
    pub(crate) enforcers: u64,
}

/// Arguments of `bench expiries`, see [`crate::expiries`].
#[derive(Debug, Clone, Args, Serialize)]
#[command(mut_arg("seconds", default("2")), mut_arg("rounds", default("3")))]
pub(crate) struct ExpiriesArgs {
    /// Exchanges that lapse in one stretch.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = value_parser!(u64).range(100..=1_000_000))]
    pub(crate) exchanges: u64,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) timing: TimingArgs,
    /// Tenants that the exchanges are in.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u64).range(1..=1_000))]
    pub(crate) tenants: u64,
    /// Approvers of each tenant, whose mailboxes the exchanges are in.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u64).range(1..=1_000))]
    pub(crate) approvers: u64,
    /// Concurrent decisions, and concurrent submissions while a stretch is prepared.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u64).range(1..=1_024))]
    pub(crate) in_flight: u64,
}

/// Arguments of `bench channels`, see [`crate::channels`].
#[derive(Debug, Clone, Args, Serialize)]
#[command(mut_arg("seconds", until_redelivery("3")), mut_arg("rounds", default("3")))]
pub(crate) struct ChannelsArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) timing: TimingArgs,
    /// Idle channels of each kind whose memory is measured.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = value_parser!(u64).range(1..=19_000))]
    pub(crate) channels: u64,
    /// Channels that messages are pushed over.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) subscribers: u64,
    /// Messages a second at which latencies are compared, if both servers reach it.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = value_parser!(u64).range(1..=50_000))]
    pub(crate) rate: u64,
    /// Exchanges to submit before a stretch, for each of its seconds. A stretch without exchanges left ends early.
    #[arg(long, value_name = "N", default_value_t = 16_000, value_parser = value_parser!(u64).range(1..=50_000))]
    pub(crate) prepared_per_second: u64,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) gateway: GatewayArgs,
    /// Publish by deciding: each message is then a complete decision over `POST /v1/decision`, not the push path alone.
    #[arg(long)]
    pub(crate) whole_decisions: bool,
    /// Measure memory of idle channels only.
    #[arg(long, conflicts_with = "only_push")]
    #[serde(skip)]
    pub(crate) only_memory: bool,
    /// Measure pushed messages only.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) only_push: bool,
}

/// Arguments of `bench reconnect`, see [`crate::reconnect`].
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct ReconnectArgs {
    /// Held channels, one client each.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = value_parser!(u64).range(1..=19_000))]
    pub(crate) channels: u64,
    /// How many times the gateway is killed under plain channels, and under channels with TLS.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) gateway: GatewayArgs,
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
#[derive(Debug, Clone, Args, Serialize)]
#[command(mut_arg("seconds", until_redelivery("5")), mut_arg("rounds", default("3")))]
pub(crate) struct LatencyArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) timing: TimingArgs,
    /// Exchanges a second; reduced if the gateway does not sustain them.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = value_parser!(u64).range(1..=50_000))]
    #[serde(rename = "rate_asked")]
    pub(crate) rate: u64,
    /// Enforcers, each with a WebSocket.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) enforcers: u64,
    /// The store of the gateway, and of the bare commit.
    #[arg(long, value_enum, default_value_t = Engine::Sqlite)]
    pub(crate) store: Engine,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) gateway: GatewayArgs,
}

/// Arguments of `bench nodes`, see [`crate::nodes`].
#[derive(Debug, Clone, Args, Serialize)]
#[command(mut_arg("seconds", until_redelivery("5")))]
pub(crate) struct NodesArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) timing: TimingArgs,
    /// Exchanges a second; may be given several times.
    #[arg(long, value_name = "N", default_values_t = [1_000, 200], value_parser = value_parser!(u64).range(1..=50_000))]
    #[serde(skip)]
    pub(crate) rate: Vec<u64>,
    /// Enforcers, each with a WebSocket on the node that does not decide.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) enforcers: u64,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) gateway: GatewayArgs,
}

/// Arguments of `bench cluster`, see [`crate::cluster`].
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct ClusterArgs {
    /// Gateway processes on one PostgreSQL.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u64).range(4..=64))]
    pub(crate) nodes: u64,
    /// How long the load lasts, in seconds.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// Exchanges a second, on all nodes together.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) rate: u64,
    /// Callers, each with one request at a time.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u64).range(1..=1_024))]
    pub(crate) in_flight: u64,
    /// Enforcers, each with a WebSocket on a node other than those that its exchanges are submitted and decided on.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = value_parser!(u64).range(1..=1_024))]
    pub(crate) enforcers: u64,
    /// Bytes of a submission's ciphertext.
    #[arg(long, value_name = "N", default_value_t = 600)]
    pub(crate) bytes: usize,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) gateway: GatewayArgs,
}

/// Arguments of `bench client`, see [`crate::client_costs`].
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct ClientArgs {
    /// How many times to measure each operation, ours and bare in turn, and the memory.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = value_parser!(u64).range(1..=100))]
    pub(crate) rounds: u64,
    /// KiB of the larger payload; the smaller one has 4. The protocol allows 2,048 with everything around it.
    #[arg(long, value_name = "N", default_value_t = 1_984)]
    pub(crate) large_kib: usize,
    /// KiB of payload in one stretch, which repeats an operation at least once: small ones are lost in the noise.
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    pub(crate) kib: usize,
}

/// What the benches share that count what something costs.
#[derive(Debug, Clone, Args)]
pub(crate) struct CountingArgs {
    /// Seconds that counters take to settle: what is closed is looked at again when the node's lease is renewed.
    /// With 0, what a node does by itself is counted too.
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub(crate) settle: u64,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
}

/// Arguments of `bench connects`, see [`crate::connects`].
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct ConnectsArgs {
    /// Clients that connect, in each way.
    #[arg(long, value_name = "N", default_value_t = 3_000, value_parser = value_parser!(u64).range(50..=19_000))]
    pub(crate) clients: u64,
    /// Seconds for which they are held and answer pings.
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = value_parser!(u64).range(1..=3_600))]
    pub(crate) seconds: u64,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) counting: CountingArgs,
}

/// Arguments of `bench hour`, see [`crate::hour`].
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct HourArgs {
    /// Turns of an agent in an hour; every second one asks a person.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = value_parser!(u32).range(1..=240))]
    pub(crate) turns: u32,
    /// Calls of a turn, 15 s apart.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u32).range(1..=240))]
    pub(crate) tools: u32,
    /// One host alone, by its word.
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// The folder of countersign and countersign-hook, if it is not the one of this program.
    #[arg(long, value_name = "DIR")]
    #[serde(skip)]
    pub(crate) programs: Option<PathBuf>,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) counting: CountingArgs,
}

/// Arguments of `bench pushes`, see [`crate::pushes`].
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct PushesArgs {
    /// Requests, each to another person; as many to people with a subscription as to people without.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = value_parser!(u64).range(10..=100_000))]
    pub(crate) requests: u64,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) counting: CountingArgs,
}
