//! `prompt` and `sessions`: what a person says to an agent, and what an agent is doing.

use std::{io::Read as _, time::Duration};

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::describe,
    moment,
    output::{object, out, say},
};
use countersign_client::{
    payload::{visible, visible_lines},
    profile::{Party, Role},
    prompt::{PromptContent, PromptDraft},
    session::OpenedSnapshot,
};
use countersign_wire::{
    id::{EnforcerId, SessionId},
    prompt::Target,
};
use serde_json::json;

use super::{inbox::Desk, options::Options};

/// Send words to an agent, without being asked.
///
/// They are encrypted to the agent's machine, which passes them on (`countersign listen`).
#[derive(Debug, Args)]
pub(super) struct Prompt {
    /// The words, or `-` to read them from the standard input.
    #[arg(value_name = "TEXT")]
    text: String,
    /// The machine. Not needed while this device is paired with one.
    #[arg(long, value_name = "ID")]
    machine: Option<EnforcerId>,
    /// The session of the agent that is meant.
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// How long the words may be passed on.
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
        let machine = match self.machine {
            Some(machine) => machine,
            None => only_machine(&desk)?,
        };
        let content = PromptContent::Text(text);
        let draft = PromptDraft {
            target: Target::AgentChat,
            content,
            session_id: self.session,
            valid_for: self.valid_for,
        };
        let sent = desk.approver.prompt(&machine, &draft, &desk.pins).await;
        let sent =
            sent.map_err(|error| Failure::new(Exit::Unreachable, format!("nothing was sent: {error}")))?;
        if options.json {
            return object(&json!({ "promptId": sent.request_id, "machine": machine, "status": "queued" }));
        }
        say(&format!("✓ sent to {machine}; it is passed on as soon as that machine listens"));
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

/// Show what a session of an agent is doing, as its machine has reported it.
#[derive(Debug, Args)]
pub(super) struct Sessions {
    /// The id of the session.
    #[arg(value_name = "ID")]
    session: SessionId,
}

impl Sessions {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let desk = Desk::open(options)?;
        let session = desk.approver.session(&self.session).await.map_err(|error| describe(&error))?;
        let snapshots: Vec<Opened> =
            session.snapshots.iter().map(|(kind, event)| open(&desk, kind, event)).collect();
        if options.json {
            let snapshots: Vec<_> =
                snapshots.iter().map(|it| json!({ "type": it.kind, "content": it.content })).collect();
            return object(&json!({
                "session": session.session_id, "machine": session.enforcer_id, "agent": session.agent_host,
                "state": session.state, "updatedAt": session.updated_at, "endedAt": session.ended_at, "snapshots": snapshots,
            }));
        }
        let state = session.state.map_or("nothing reported", |state| state.as_str());
        let agent = session.agent_host.as_deref().map(visible).unwrap_or_default();
        let machine = session.enforcer_id.map(|id| format!(" on {id}")).unwrap_or_default();
        out(&format!("{}{machine}: {agent} {state}", session.session_id))?;
        for snapshot in snapshots {
            out(&format!("{}:", snapshot.kind))?;
            visible_lines(&snapshot.content).try_for_each(|line| out(&format!("  {line}")))?;
        }
        Ok(())
    }
}

/// A snapshot as it is shown.
struct Opened {
    kind: String,
    content: String,
}

fn open(desk: &Desk, kind: &str, event: &str) -> Opened {
    let (approver, now) = (&desk.approver, desk.approver.clock.now());
    let opened = OpenedSnapshot::open(event, approver.id.as_str(), &approver.keys, &desk.pins, now);
    let content = opened
        .map_or_else(|error| format!("can't be shown: {error}"), |snapshot| snapshot.payload.to_string());
    Opened { kind: visible(kind), content }
}
