//! `ask`: about anything, without running it.

use std::{io::Read as _, path::PathBuf, time::Duration};

use clap::Args;
use countersign_client::{
    payload::{Checkpoint, Payload, Plan as PlanPayload},
    profile::Role,
    reply::VerifiedDecision,
    request::{Draft, Request},
};
use countersign_wire::{decision::DecisionOutcome, timestamp::Timestamp};
use serde_json::{Value, json};

use super::Options;
use crate::{
    asking,
    execution::{Plan, Stdin},
    exit::{Exit, Failure},
    home::{Home, failed},
    moment,
    output::object,
    repository,
};

/// How long people have for an answer, unless it is said.
pub(super) const DEFAULT_VALID_FOR: &str = "10m";

/// Ask about a command, plan, patch or checkpoint, and print the answer.
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
    /// How long people have for an answer.
    #[arg(long, value_name = "TIME", default_value = DEFAULT_VALID_FOR, value_parser = moment::duration)]
    valid_for: Duration,
    /// A command, after `--`.
    #[arg(last = true, value_name = "CMD", group = "what")]
    command: Vec<String>,
}

impl Ask {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let payload = self.payload()?;
        let identity = Home::of_user()?.find(Role::Enforcer, options.profile.as_deref())?;
        let (enforcer, pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
        let mut interruption = asking::Interruption::watch()?;
        let draft = draft(&payload, self.valid_for)?;
        let request = asking::submit(&enforcer, &pins, &draft, &mut interruption).await?;
        let decision = asking::wait(&enforcer, &pins, &request, &mut interruption).await?;
        report(&decision, &request, enforcer.clock.now(), options)
    }

    fn payload(&self) -> Result<Payload, Failure> {
        if let Some(path) = &self.plan {
            return Ok(Payload::Plan(PlanPayload::new(text_of(path)?)));
        }
        if let Some(summary) = &self.checkpoint {
            return Ok(Payload::Checkpoint(Checkpoint::new(summary.as_str())));
        }
        if self.command.is_empty() {
            return Err(Failure::new(Exit::Usage, "nothing was given to ask about")
                .next("name a command after --, or use --plan or --checkpoint"));
        }
        let cwd = std::env::current_dir().map_err(|error| Failure::new(Exit::Failed, error))?;
        let plan = Plan::examine(&self.command, &cwd, &[]).map_err(|error| error.failure())?;
        Ok(Payload::Command(plan.payload(&Stdin::Terminal)))
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

/// A payload, ready to be asked about from here.
pub(super) fn draft(payload: &Payload, valid_for: Duration) -> Result<Draft, Failure> {
    let cwd = std::env::current_dir().map_err(|error| Failure::new(Exit::Failed, error))?;
    let text = payload
        .to_json()
        .map_err(|error| Failure::new(Exit::Failed, error).next("show people less of it, or ask in parts"))?;
    Ok(Draft {
        artifact_type: payload.artifact_type(),
        payload: text,
        repo_name: repository::name_of(&cwd),
        valid_for,
    })
}

/// Says what was decided, to people and to programs.
pub(super) fn report(
    decision: &VerifiedDecision,
    request: &Request,
    now: Timestamp,
    options: &Options,
) -> Result<(), Failure> {
    let announced = asking::announce(decision, now);
    if options.json && decision.outcome == DecisionOutcome::Approve {
        object(&json_of(decision, request))?;
    }
    announced
}

/// A decision for programs.
pub(super) fn json_of(decision: &VerifiedDecision, request: &Request) -> Value {
    json!({
        "outcome": match decision.outcome { DecisionOutcome::Approve => "approved", DecisionOutcome::Reject => "rejected" },
        "requestId": request.request_id, "approver": decision.approver, "device": decision.device.to_string(),
        "scope": decision.scope, "validUntil": decision.valid_until, "reason": decision.words.reason,
        "action": decision.words.action,
    })
}
