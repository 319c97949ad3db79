//! The arguments of `simulate`.

use clap::Args;

use crate::bugs::Bug;

/// Arguments of `simulate`, see [`super`].
#[derive(Debug, Clone, Args)]
pub(crate) struct SimulateArgs {
    /// How many seeds to run.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// The first of them.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) first: u64,
    /// Run this seed only, and print each of its steps.
    #[arg(long, value_name = "S", conflicts_with_all = ["seeds", "first", "all_bugs"])]
    pub(crate) seed: Option<u64>,
    /// Run all nodes and enforcers with this planted bug.
    #[arg(long, value_name = "NAME")]
    pub(crate) bug: Option<Bug>,
    /// Plant each bug in turn, and print after how many seeds each was caught. Fails if one was not.
    #[arg(long, conflicts_with = "bug")]
    pub(crate) all_bugs: bool,
    /// Go on after a seed has failed, and print what each violates.
    #[arg(long, conflicts_with = "all_bugs")]
    pub(crate) keep_going: bool,
    /// Print one JSON object instead.
    #[arg(long)]
    pub(crate) json: bool,
}
