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

impl Options {
    /// The profile as it was typed. What answers for a host takes none from a variable: settings of a repository set those.
    pub fn typed_profile(&self) -> Option<String> {
        let typed = |word: std::ffi::OsString| {
            word.to_str().is_some_and(|word| word == "--profile" || word.starts_with("--profile="))
        };
        self.profile.clone().filter(|_| std::env::args_os().any(typed))
    }
}
