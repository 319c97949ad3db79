//! The arguments of `faults`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Clone, Args)]
pub(crate) struct FaultsArgs {
    /// Seconds during which faults begin; a quiet phase follows.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..=86_400))]
    pub(crate) seconds: u64,
    /// The same seed gives the same schedule of faults. Without it, a new one is drawn and printed.
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// How many failovers there are among the faults. Without it, one every 90 s, and at least one.
    #[arg(long, value_name = "N")]
    pub(crate) failovers: Option<u64>,
    /// Run the database under Patroni: three members and etcd, from Debian's packages. Without it, a primary and one standby.
    #[arg(long)]
    pub(crate) patroni: bool,
    /// Speak TLS between clients and nodes.
    #[arg(long)]
    pub(crate) tls: bool,
    /// Spread the tenants over two shards, and move one after the other to the other shard, N times in all.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "rolling", value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub(crate) moves: u64,
    /// Do nothing but restart the three nodes one after the other, N times, instead of faults. No exchange may then fail for a
    /// client of the library.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(crate) rolling: Option<u64>,
    /// With --rolling: the program of a gateway that the nodes run until their first restart.
    #[arg(long, value_name = "PATH", requires = "rolling")]
    pub(crate) previous: Option<PathBuf>,
    /// The gateway's program. Without it, the one that is part of this program.
    #[arg(long, value_name = "PATH", conflicts_with = "bug")]
    pub(crate) gateway: Option<PathBuf>,
    /// Run nodes with this planted bug, to see that it is found.
    #[arg(long, value_name = "NAME")]
    pub(crate) bug: Option<String>,
    /// How many enforcers there are, in five tenants.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(5..=1_000))]
    pub(crate) enforcers: u64,
    /// How many approvers there are, in five tenants.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(5..=1_000))]
    pub(crate) approvers: u64,
    /// Where to write the history, the timeline and the nodes' logs. Without it, they are kept only after a violation.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}
