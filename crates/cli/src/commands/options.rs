//! Options that every command has.

use clap::Args;

/// Options that every command has.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The profile to act with. Not needed while there is one for each role.
    #[arg(long, global = true, value_name = "NAME", env = "COUNTERSIGN_PROFILE", hide_env_values = true)]
    pub profile: Option<String>,
    /// Write one object to stdout, for programs.
    #[arg(long, global = true)]
    pub json: bool,
}
