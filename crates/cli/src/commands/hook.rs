//! `hook`: what a coding agent's host starts before the agent acts.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use countersign_agents::{
    hook::{kept, start::Start, supervisor},
    hook_line::{keeper::KeeperPlace, mode::Mode, place::Place},
    hosts::Host,
    rules::policy,
    tool::moment,
};

use super::options::Options;

/// The hook that an agent's host runs before the agent acts.
///
/// `countersign install HOST` puts this into the host's settings; nobody types it. The host writes an event to the standard
/// input, and reads the verdict in its own format. A rule, a grant or a person decides. Whatever fails, the verdict is no,
/// in the time that the host gives.
///
/// gate: every call needs a rule, a grant or a person. relay: only what the host would ask about is asked; where nobody
/// sees the host's own prompt, relay is gate.
#[derive(Debug, Args)]
pub(super) struct Hook {
    /// The program that runs the agent.
    #[arg(value_name = "HOST")]
    host: Host,
    /// Which calls need an answer.
    #[arg(long, value_name = "MODE", default_value = "gate")]
    mode: Mode,
    /// After how many seconds the host stops waiting. The verdict comes earlier.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    host_timeout: Duration,
    /// Let an unattended run end while people think, for as long as this, and pick the answer up when it is resumed. Only
    /// Claude Code can be resumed like that.
    #[arg(long, value_name = "TIME", value_parser = moment::duration)]
    defer_for: Option<Duration>,
    #[command(flatten)]
    place: Place,
    /// Let a keeper decide, and deny everything if it does not answer (docs/keeper.md).
    #[arg(long, value_name = "PLACE")]
    keeper: Option<KeeperPlace>,
    #[arg(long, hide = true)]
    worker: bool,
    #[arg(long, hide = true)]
    attended: bool,
    /// Why the keeper could not be asked.
    #[arg(long, hide = true, requires = "keeper")]
    failed: Option<String>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "must be a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time >= Duration::from_millis(100) => Ok(time),
        _ => Err("must be at least 0.1".to_owned()),
    }
}

impl Hook {
    pub(super) async fn run(self, options: &Options) -> ExitCode {
        let start = Start {
            host: self.host,
            mode: policy::mode(self.mode),
            host_timeout: self.host_timeout,
            defer_for: self.defer_for,
            place: self.place,
            keeper: self.keeper,
            profile: options.typed_profile(),
        };
        match (self.worker, start.keeper) {
            (true, _) => supervisor::work(&start, self.attended).await,
            (false, Some(keeper)) => kept::ask(&start, keeper, self.failed),
            (false, None) => supervisor::supervise(&start).await,
        }
    }
}
