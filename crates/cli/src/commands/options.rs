//! Options that every command has.

use std::time::Duration;

use clap::Args;
use countersign_agents::tool::{moment, output};
use countersign_wire::artifact::Loudness;

/// How long a command goes on in a terminal after its request has expired, unless it is said.
const PATIENCE: Duration = Duration::from_mins(10);

/// Options that every command has.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The profile to use. Not needed if there is only one for each role.
    #[arg(long, global = true, value_name = "NAME", env = "COUNTERSIGN_PROFILE", hide_env_values = true)]
    pub profile: Option<String>,
    /// Write one JSON object to stdout, for programs.
    #[arg(long, global = true)]
    pub json: bool,
}

/// What commands do that wait for an answer, when it does not come in time.
#[derive(Debug, Clone, Args)]
pub(super) struct AskAgain {
    /// After it has expired, go on for this long and ask again if an approver wants that; 0 for not at all. Without this, 10m
    /// in a terminal and 0 elsewhere.
    #[arg(long, value_name = "TIME", value_parser = patience)]
    ask_again_for: Option<Duration>,
}

/// How loudly people are asked.
#[derive(Debug, Clone, Args)]
pub(super) struct Ring {
    /// Whether phones ring: quiet (never), normal, or loud (also in quiet hours). Without this, as your rules say.
    #[arg(long, value_name = "LOUDNESS", value_parser = loudness)]
    ring: Option<Loudness>,
}

impl Ring {
    /// The word for it, if it was said.
    pub(super) fn word(&self) -> Option<String> {
        self.ring.map(|ring| ring.as_str().to_owned())
    }
}

/// A time as it travels.
pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn loudness(word: &str) -> Result<Loudness, String> {
    Loudness::of_word(word).ok_or_else(|| "must be quiet, normal or loud".to_owned())
}

impl AskAgain {
    /// A person in a terminal can stop it at any time; a program counts on the end of its request.
    pub(super) fn patience(&self) -> Duration {
        let usual = if output::is_live() { PATIENCE } else { Duration::ZERO };
        self.ask_again_for.unwrap_or(usual)
    }
}

fn patience(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { moment::duration(text) }
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
