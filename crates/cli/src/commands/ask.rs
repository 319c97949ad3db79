//! `ask`: about anything, without running it.

use std::{io::Read as _, path::PathBuf, time::Duration};

use clap::Args;
use countersign_agents::{
    asking::{self, Attendance, again::Asker},
    calls::call::Call,
    examine::{environment::last::LastEnvironment, repository},
    hook::stopped,
    rules::Rules,
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        home::{Home, failed},
        moment,
        output::{object, out},
    },
};
use countersign_client::{
    audience::Audience,
    enforcer::Enforcer,
    payload::{Checkpoint, Payload, Plan as PlanPayload},
    profile::{Facts, Pins, Role},
    receipt::Outcome,
    request::Draft,
    taken::Taken,
};
use countersign_wire::decision::DecisionOutcome;
use serde_json::{Value, json};

use super::options::{AskAgain, Options, Ring};
use crate::execution::{Plan, Stdin, Wanted};

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
        let identity = home.find(Role::Enforcer, options.profile.as_deref())?;
        stopped::refuse(&home.hooks_folder(), self.session.as_deref())?;
        let (enforcer, pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
        let payload = self.payload(&enforcer)?;
        let mut interruption = asking::Interruption::watch()?;
        let to = self.ring.of(self.audience(&home, identity.profile.facts())?);
        let draft = draft(&payload, self.valid_for, self.session.clone(), to)?;
        if self.detach {
            let request =
                asking::submit(&enforcer, &pins, &draft, Attendance::Detached, &mut interruption).await?;
            return match options.json {
                true => object(&json!({ "requestId": request.request_id, "expiresAt": request.expires_at })),
                false => out(request.request_id.as_str()),
            };
        }
        let asker = Asker { identity: &identity, enforcer: &enforcer, patience: self.again.patience() };
        let taken = asker.permission(&draft, &mut interruption).await?;
        let (taken, pins) = asking::still_trusted(&enforcer, &identity.profile, taken).await?;
        report(&enforcer, &pins, taken, options).await
    }

    fn audience(&self, home: &Home, facts: &Facts) -> Result<Audience, Failure> {
        let cwd = std::env::current_dir().map_err(|error| Failure::new(Exit::Failed, error))?;
        let rules = Rules::load(home, &cwd, &Caller::this_process()).map_err(|error| error.failure())?;
        rules.check_profile(facts)?;
        match self.command.is_empty() {
            true => rules.usual_audience(),
            false => rules.audience(&Call::of_words(&self.command, &cwd)),
        }
    }

    fn payload(&self, enforcer: &Enforcer) -> Result<Payload, Failure> {
        if let Some(path) = &self.plan {
            return Ok(Payload::Plan(PlanPayload::new(text_of(path)?)));
        }
        if let Some(summary) = &self.checkpoint {
            return Ok(Payload::Checkpoint(Checkpoint::new(summary.as_str())));
        }
        let cwd = std::env::current_dir().map_err(|error| Failure::new(Exit::Failed, error))?;
        let mac = |name: &str, value: &[u8]| enforcer.keys.environment_mac(name, value);
        let variables: Vec<_> = std::env::vars_os().collect();
        let wanted = Wanted {
            variables: &variables,
            env: &[],
            with: &[],
            mac: &mac,
            last: &LastEnvironment::default(),
        };
        let plan = Plan::examine(&self.command, &cwd, &wanted).map_err(|error| error.failure())?;
        Ok(plan.payload(&Stdin::unread()?))
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
pub(super) fn draft(
    payload: &Payload,
    valid_for: Duration,
    session: Option<String>,
    to: Audience,
) -> Result<Draft, Failure> {
    let cwd = std::env::current_dir().map_err(|error| Failure::new(Exit::Failed, error))?;
    let text = payload
        .to_json()
        .map_err(|error| Failure::new(Exit::Failed, error).next("show people less of it, or ask in parts"))?;
    let repo_name = repository::name_of(&cwd);
    Ok(Draft {
        artifact_type: payload.artifact_type(),
        payload: text,
        repo_name,
        valid_for,
        session,
        actions: Vec::new(),
        to,
    })
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

/// A decision for programs.
pub(super) fn json_of(taken: &Taken) -> Value {
    let decision = &taken.decision;
    json!({
        "outcome": match decision.outcome { DecisionOutcome::Approve => "approved", DecisionOutcome::Reject => "rejected" },
        "requestId": taken.request_id, "use": taken.number, "approver": decision.approver,
        "device": decision.device.to_string(), "scope": decision.scope, "validUntil": decision.valid_until,
        "reason": decision.words.reason, "action": decision.words.action,
    })
}
