//! `stop`: end what an agent does.

use std::time::Duration;

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    output::{object, say},
};
use countersign_client::prompt::{PromptContent, PromptDraft};
use countersign_wire::prompt::Target;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    inbox::{Desk, answers},
    options::Options,
    sessions::{self, KnownSession},
};
use crate::answers::Answers;

/// For how long a machine that is away may still carry it out.
const VALID_FOR: Duration = Duration::from_hours(24);

/// How long to wait for the machine.
const WAIT: Duration = Duration::from_secs(6);

const PAUSE: Duration = Duration::from_millis(500);

/// Stop an agent: everything it wants to do from now on is denied.
///
/// The order is encrypted and signed for by your keys like every message; the gateway can't give it. The hook on the agent's
/// machine carries it out at once if it is asking, else after the call that is running, within seconds. It can't interrupt a
/// command that is already running, and it can't keep the agent from writing text. Machines without a hook only pass it on
/// (`countersign listen`). There is no way back: start a new session to continue.
#[derive(Debug, Args)]
pub(super) struct Stop {
    /// The session: its id, or the beginning of it, as `countersign sessions` shows it. Not needed while only one is open.
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Tell the agent, and whoever is at its machine, why.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Stop {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let (desk, answers) = (Desk::open(options)?, answers(options)?);
        let session = match &self.session {
            Some(start) => sessions::named(&desk, &answers, start).await?,
            None => only(&desk, &answers).await?,
        };
        let now = desk.approver.clock.now();
        let machine = session.machine.clone().ok_or_else(|| {
            Failure::new(Exit::Failed, "nobody says which machine this session is on, so nothing was sent")
        })?;
        if !options.json {
            say(&format!("Stopping: {}\n  {}", session.name(now), session.who()));
        }
        let draft = PromptDraft {
            target: Target::Other,
            content: PromptContent::Stop { words: self.reason },
            session_id: Some(session.id.clone()),
            valid_for: VALID_FOR,
        };
        let sent = desk.approver.prompt(&machine, &draft, &desk.pins).await;
        let sent =
            sent.map_err(|error| Failure::new(Exit::Unreachable, format!("nothing was sent: {error}")))?;
        let is_stopped = has_ended(&desk, &session).await;
        if options.json {
            let (id, prompt) = (&session.id, &sent.request_id);
            return object(
                &json!({ "session": id, "machine": machine, "promptId": prompt, "stopped": is_stopped }),
            );
        }
        say(&match is_stopped {
            true => format!("✓ stopped. {machine} denies everything in this session from now on"),
            false => format!(
                "✓ sent to {machine}, which has not confirmed it yet. It is carried out when its agent next asks\n  or finishes a call, within 24 hours; `countersign sessions` shows when the session has ended"
            ),
        });
        Ok(())
    }
}

/// The only session that has not ended.
async fn only(desk: &Desk, answers: &Answers) -> Result<KnownSession, Failure> {
    let mut open = sessions::known(desk, answers).await?;
    open.retain(|session| session.ended_at.is_none());
    let now = desk.approver.clock.now();
    match &open[..] {
        [only] => Ok(only.clone()),
        [] => Err(Failure::new(Exit::Failed, "no agent is at work, as far as this device knows")),
        several => {
            let line = |session: &KnownSession| format!("  {}  {}", session.short(), session.name(now));
            let lines: Vec<String> = several.iter().map(line).collect();
            let what = format!("{} sessions are open:\n{}\n", several.len(), lines.join("\n"));
            Err(Failure::new(Exit::Usage, what).next("say which one: `countersign stop ID`"))
        }
    }
}

/// Whether the machine has reported the end of the session in time, by the gateway's word.
async fn has_ended(desk: &Desk, session: &KnownSession) -> bool {
    let until = Instant::now() + WAIT;
    loop {
        let reported = desk.approver.session(&session.id).await;
        if reported.is_ok_and(|reported| reported.ended_at.is_some()) {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        sleep(PAUSE).await;
    }
}
