//! `prompt`: what a person says to an agent.

use std::{io::Read as _, time::Duration};

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    moment,
    output::{object, say},
};
use countersign_client::{
    profile::{Party, Role},
    prompt::{PromptContent, PromptDraft},
};
use countersign_wire::{id::EnforcerId, prompt::Target};
use serde_json::json;

use super::{
    inbox::{Desk, answers},
    options::Options,
    sessions,
};

/// Send a message to an agent without being asked.
///
/// It is encrypted to the agent's machine. Hooks deliver it when the agent finishes its turn; `countersign listen` prints it.
#[derive(Debug, Args)]
pub(super) struct Prompt {
    /// The message, or `-` to read it from standard input.
    #[arg(value_name = "TEXT")]
    text: String,
    /// The machine. Not needed while this device is paired with one.
    #[arg(long, value_name = "ID")]
    machine: Option<EnforcerId>,
    /// The session that is meant: its id, or the beginning of it, as `countersign sessions` shows it.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// How long the message may be delivered.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = moment::duration)]
    valid_for: Duration,
}

impl Prompt {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let text = match self.text.as_str() {
            "-" => {
                let mut text = String::new();
                std::io::stdin()
                    .read_to_string(&mut text)
                    .map_err(|error| Failure::new(Exit::Failed, error))?;
                text
            }
            text => text.to_owned(),
        };
        let desk = Desk::open(options)?;
        let session = match &self.session {
            Some(start) => Some(sessions::named(&desk, &answers(options)?, start).await?),
            None => None,
        };
        let of_session = session.as_ref().and_then(|session| session.machine.clone());
        let machine = match self.machine.or(of_session) {
            Some(machine) => machine,
            None => only_machine(&desk)?,
        };
        let content = PromptContent::Text(text);
        let draft = PromptDraft {
            target: Target::AgentChat,
            content,
            session_id: session.map(|session| session.id),
            valid_for: self.valid_for,
        };
        let sent = desk.approver.prompt(&machine, &draft, &desk.pins).await;
        let sent =
            sent.map_err(|error| Failure::new(Exit::Unreachable, format!("nothing was sent: {error}")))?;
        if options.json {
            return object(&json!({ "promptId": sent.request_id, "machine": machine, "status": "queued" }));
        }
        say(&format!("✓ sent to {machine}. The agent gets it when it finishes its turn"));
        Ok(())
    }
}

fn only_machine(desk: &Desk) -> Result<EnforcerId, Failure> {
    let now = desk.approver.clock.now();
    let mut ids: Vec<&EnforcerId> = Vec::new();
    for pin in desk.pins.active_in_role(Role::Enforcer, now) {
        if let Party::Enforcer(id) = pin.party() {
            ids.push(id);
        }
    }
    ids.sort();
    ids.dedup();
    match ids[..] {
        [only] => Ok(only.clone()),
        [] => Err(Failure::new(Exit::NotSetUp, "this device is paired with no machine")
            .next("pair it with `countersign pair --answer`")),
        _ => Err(Failure::new(Exit::Usage, "this device is paired with several machines")
            .next("say which one with --machine ID")),
    }
}
