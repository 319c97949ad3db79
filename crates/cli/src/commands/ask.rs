//! `ask`: about anything, without running it.

use std::{io::Read as _, path::PathBuf, time::Duration};

use clap::Args;
use countersign_agents::{
    asking::{self, Attendance},
    execution::{RunAs, unread},
    proposals::{Command, Proposal, What, decider::Decider, permission::json_of},
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        home::{Home, failed},
        moment,
        output::{object, out},
    },
};
use countersign_client::{enforcer::Enforcer, profile::Pins, receipt::Outcome, taken::Taken};
use serde_json::json;

use super::options::{AskAgain, Options, Ring, milliseconds};

/// How long people have for an answer, unless it is said.
pub(super) const DEFAULT_VALID_FOR: &str = "10m";

/// Ask about a command, plan or checkpoint without running anything.
///
/// Nothing is run. The words of the answer go to stdout; the exit code says what it was: 0 approved, 81 rejected, 82 nobody
/// answered in time, 83 the gateway could not be reached.
#[derive(Debug, Args)]
pub(super) struct Ask {
    /// A plan or a task in Markdown, from a file or from the standard input with `-`.
    #[arg(long, value_name = "FILE", group = "what")]
    plan: Option<PathBuf>,
    /// Where the work is, in a few words: may the agent go on?
    #[arg(long, value_name = "TEXT", group = "what")]
    checkpoint: Option<String>,
    /// How long people have to answer.
    #[arg(long, value_name = "TIME", default_value = DEFAULT_VALID_FOR, value_parser = moment::duration)]
    valid_for: Duration,
    #[command(flatten)]
    again: AskAgain,
    #[command(flatten)]
    ring: Ring,
    /// Print the id of the request and don't wait; `countersign wait ID` gets the answer.
    #[arg(long, conflicts_with = "ask_again_for")]
    detach: bool,
    /// The session that this belongs to, so that people can approve for all of it.
    #[arg(long, value_name = "ID", env = "COUNTERSIGN_SESSION", hide_env_values = true)]
    session: Option<String>,
    /// A command, after `--`.
    #[arg(last = true, value_name = "CMD", group = "what")]
    command: Vec<String>,
}

impl Ask {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        if self.plan.is_none() && self.checkpoint.is_none() && self.command.is_empty() {
            return Err(Failure::new(Exit::Usage, "there is nothing to ask about")
                .next("add a command after --, or use --plan or --checkpoint"));
        }
        let home = Home::of_user()?;
        let decider = Decider::of(home.clone(), options.profile.clone())?;
        let mut interruption = asking::Interruption::watch()?;
        let proposal = Proposal {
            what: self.what()?,
            valid_for: milliseconds(self.valid_for),
            patience: milliseconds(self.again.patience()),
            ring: self.ring.word(),
            session: self.session,
        };
        if self.detach {
            if decider.keeper().is_some() {
                return Err(Failure::new(
                    Exit::Usage,
                    "a keeper decides here, and it asks only for whoever waits",
                )
                .next("run it without --detach"));
            }
            return detached(&proposal, &home, &mut interruption, options).await;
        }
        let approval = decider.decide(&proposal, &mut interruption).await?;
        if options.json {
            object(&approval.json())?;
        }
        approval.finish(Outcome::Applied { exit_status: None }).await;
        Ok(())
    }

    fn what(&self) -> Result<What, Failure> {
        if let Some(path) = &self.plan {
            return Ok(What::Plan(text_of(path)?));
        }
        if let Some(summary) = &self.checkpoint {
            return Ok(What::Checkpoint(summary.clone()));
        }
        Ok(What::Command(Command {
            argv: self.command.clone(),
            env: Vec::new(),
            with: Vec::new(),
            reads: unread(),
            run_as: RunAs::this_process(),
        }))
    }
}

/// Asks, and leaves the answer to whoever comes later.
async fn detached(
    proposal: &Proposal,
    home: &Home,
    interruption: &mut asking::Interruption,
    options: &Options,
) -> Result<(), Failure> {
    let asked = proposal.prepare(home, options.profile.as_deref(), &Caller::this_process())?;
    let pins = asked.identity.profile.pins().map_err(failed)?;
    let request =
        asking::submit(&asked.enforcer, &pins, &asked.draft, Attendance::Detached, interruption).await?;
    match options.json {
        true => object(&json!({ "requestId": request.request_id, "expiresAt": request.expires_at })),
        false => out(request.request_id.as_str()),
    }
}

/// The text of a file, or of the standard input.
fn text_of(path: &PathBuf) -> Result<String, Failure> {
    let unreadable =
        |error| Failure::new(Exit::Failed, format!("the file {} can't be read: {error}", path.display()));
    if path.as_os_str() != "-" {
        return std::fs::read_to_string(path).map_err(unreadable);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// Says what was decided, to people and to programs, and to whoever decided that it has arrived.
pub(super) async fn report(
    enforcer: &Enforcer,
    pins: &Pins,
    taken: Taken,
    options: &Options,
) -> Result<(), Failure> {
    let announced = asking::announce(&taken.decision, enforcer.clock.now());
    if options.json && announced.is_ok() {
        object(&json_of(&taken))?;
    }
    asking::finish(enforcer, pins, taken, Outcome::Applied { exit_status: None }).await;
    announced
}
