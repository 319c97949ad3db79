//! `sessions`: what agents are doing.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::describe,
    moment,
    output::{object, out, say},
};
use countersign_client::{
    channel::{Channel, Event, Settings, Transport},
    payload::{visible, visible_lines},
    profile::Party,
    session::{OpenedSnapshot, Session},
};
use countersign_wire::{
    id::{EnforcerId, SessionId},
    session::{EndReason, SessionState, SnapshotType},
    timestamp::Timestamp,
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    inbox::{Desk, answers},
    options::Options,
};
use crate::{answers::Answers, review};

/// How long to listen for sessions that have asked nothing yet.
const LISTEN_TIME: Duration = Duration::from_secs(2);

/// After this time without a message, everything that waits is there.
const QUIET: Duration = Duration::from_millis(400);

/// Sessions that are shown at most, the newest of them.
const MAX_SESSIONS: usize = 30;

/// List what agents are doing, or show one session.
///
/// A session is one conversation with an agent. Without an id, the sessions are listed that have asked you something or that
/// your machines report, each with its task, agent and project.
#[derive(Debug, Args)]
pub(super) struct Sessions {
    /// The id of the session, or the beginning of it.
    #[arg(value_name = "ID")]
    session: Option<String>,
}

/// A session, as far as this device knows it.
#[derive(Debug, Clone)]
pub(super) struct KnownSession {
    pub(super) id: SessionId,
    /// Its machine: as its keys have proven, or else as the gateway says.
    pub(super) machine: Option<EnforcerId>,
    pub(super) task: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) project: Option<String>,
    /// How many of its requests wait for this person.
    pub(super) waiting: usize,
    /// When it was heard of last.
    pub(super) at: Option<Timestamp>,
    state: Option<SessionState>,
    pub(super) ended_at: Option<Timestamp>,
    end_reason: Option<EndReason>,
}

impl KnownSession {
    fn new(id: SessionId) -> Self {
        Self {
            id,
            machine: None,
            task: None,
            agent: None,
            project: None,
            waiting: 0,
            at: None,
            state: None,
            ended_at: None,
            end_reason: None,
        }
    }

    /// Its task, on one line; never its id.
    pub(super) fn name(&self, now: Timestamp) -> String {
        let task =
            self.task.as_deref().and_then(|task| task.lines().map(str::trim).find(|line| !line.is_empty()));
        match (task, self.at) {
            (Some(task), _) if task.chars().count() > 70 => {
                format!("{}…", visible(&task.chars().take(70).collect::<String>()))
            }
            (Some(task), _) => visible(task),
            (None, Some(at)) => format!("Untitled task · last heard of {}", moment::when(at, now)),
            (None, None) => "Untitled task".to_owned(),
        }
    }

    /// Whose it is: agent, project and machine.
    pub(super) fn who(&self) -> String {
        let named = [&self.agent, &self.project].into_iter().flatten().map(|it| visible(it));
        let machine = self.machine.iter().map(|machine| format!("on {}", visible(machine.as_str())));
        named.chain(machine).collect::<Vec<_>>().join(" · ")
    }

    fn doing(&self, now: Timestamp) -> String {
        match (self.ended_at, self.state) {
            (Some(at), _) if self.end_reason == Some(EndReason::PolicyKill) => {
                format!("stopped {}", moment::when(at, now))
            }
            (Some(at), _) => format!("ended {}", moment::when(at, now)),
            (None, Some(state)) => state_words(state).to_owned(),
            (None, None) => String::new(),
        }
    }

    fn entry(&self, now: Timestamp) -> String {
        let waiting = match self.waiting {
            0 => String::new(),
            count => format!("{count} waiting for you"),
        };
        let parts = [self.who(), self.doing(now), waiting, self.short()];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}\n  {}", self.name(now), parts.join(" · "))
    }

    /// The beginning of its id, which is enough for people to name it.
    pub(super) fn short(&self) -> String {
        visible(&self.id.as_str().chars().take(8).collect::<String>())
    }

    fn json(&self) -> Value {
        json!({
            "session": self.id, "machine": self.machine, "task": self.task, "agent": self.agent, "project": self.project,
            "waiting": self.waiting, "state": self.state, "endedAt": self.ended_at, "endReason": self.end_reason,
        })
    }
}

fn state_words(state: SessionState) -> &'static str {
    match state {
        SessionState::Idle => "finished its turn",
        SessionState::Planning | SessionState::Editing | SessionState::Executing => "working",
        SessionState::WaitingApproval => "waiting for an answer",
        SessionState::Error => "failed",
    }
}

/// Every session that this device knows of, newest first.
pub(super) async fn known(desk: &Desk, answers: &Answers) -> Result<Vec<KnownSession>, Failure> {
    let mut found = of_requests(desk, answers).await?;
    for id in heard(desk).await {
        found.entry(id.clone()).or_insert_with(|| KnownSession::new(id));
    }
    let mut sessions: Vec<KnownSession> = found.into_values().collect();
    sessions.sort_by_key(|it| Reverse((it.waiting > 0, it.at)));
    sessions.truncate(MAX_SESSIONS);
    let mut shown = Vec::new();
    for mut session in sessions {
        // What the gateway does not keep any more is still known by what it has asked.
        if let Ok(reported) = desk.approver.session(&session.id).await {
            // Receipts and histories travel as sessions, too.
            if session.machine.is_none() && !reported.is_of_an_agent() {
                continue;
            }
            complete(&mut session, &reported, desk);
        }
        shown.push(session);
    }
    let mut sessions = shown;
    sessions.sort_by_key(|it| Reverse((it.ended_at.is_none(), it.waiting > 0, it.at)));
    Ok(sessions)
}

/// The sessions of what waits, and of what was answered here.
async fn of_requests(desk: &Desk, answers: &Answers) -> Result<BTreeMap<SessionId, KnownSession>, Failure> {
    let mut found: BTreeMap<SessionId, KnownSession> = BTreeMap::new();
    for answer in answers.read().unwrap_or_default() {
        let Some(Ok(id)) = answer.session.as_deref().map(str::parse::<SessionId>) else { continue };
        let session = found.entry(id.clone()).or_insert_with(|| KnownSession::new(id));
        session.machine = Some(answer.machine);
        session.at = session.at.max(Some(answer.at));
        session.task = answer.task.or(session.task.take());
        session.agent = answer.agent.or(session.agent.take());
        session.project = answer.project.or(session.project.take());
    }
    for request in desk.items().await?.into_iter().filter_map(|item| item.opened.ok()) {
        let Some(Ok(id)) = request.session.as_deref().map(str::parse::<SessionId>) else { continue };
        let session = found.entry(id.clone()).or_insert_with(|| KnownSession::new(id));
        let payload = review::payload(&request);
        let about = payload.context().map(|context| context.about.clone()).unwrap_or_default();
        session.waiting += 1;
        session.machine = Some(request.enforcer);
        session.at = session.at.max(Some(request.created_at));
        session.task = about.task.or(session.task.take());
        session.agent = about.agent.or(session.agent.take());
        session.project = about.project.or(request.repo_name).or(session.project.take());
    }
    Ok(found)
}

/// The sessions about which messages wait. They are left for whoever shows them.
async fn heard(desk: &Desk) -> Vec<SessionId> {
    let approver = &desk.approver;
    let settings = Settings { transports: vec![Transport::Websocket], ..Settings::default() };
    let party = Party::Approver(approver.id.clone());
    let mut channel = Channel::open(approver.http.clone(), party, approver.clock.clone(), settings);
    let (until, mut is_connected, mut ids) = (Instant::now() + LISTEN_TIME, false, Vec::new());
    loop {
        let next = async {
            match is_connected {
                true => timeout(QUIET, channel.next()).await.ok(),
                false => Some(channel.next().await),
            }
        };
        match timeout_at(until, next).await {
            Ok(Some(Ok(Event::Connected { .. }))) => is_connected = true,
            Ok(Some(Ok(Event::Session(pushed)))) => {
                ids.extend(pushed.request_id.as_str().parse::<SessionId>());
            }
            Ok(Some(Ok(_))) => {}
            _ => return ids,
        }
    }
}

/// Adds what the gateway says of a session, and what its machine has sealed.
fn complete(session: &mut KnownSession, reported: &Session, desk: &Desk) {
    session.machine = session.machine.take().or_else(|| reported.enforcer_id.clone());
    session.agent = session.agent.take().or_else(|| reported.agent_host.clone());
    session.at = session.at.max(reported.updated_at);
    session.state = reported.state;
    (session.ended_at, session.end_reason) = (reported.ended_at, reported.end_reason);
    let context = reported.snapshots.get(SnapshotType::Context.as_str());
    let task = context.and_then(|event| {
        let (approver, now) = (&desk.approver, desk.approver.clock.now());
        let opened =
            OpenedSnapshot::open(event, approver.id.as_str(), &approver.keys, &desk.pins, now).ok()?;
        let payload: Value = serde_json::from_str(&opened.payload).ok()?;
        payload["task"].as_str().map(str::to_owned)
    });
    session.task = task.or(session.task.take());
}

/// The session whose id begins like this. An id that nobody here has heard of is asked of the gateway.
pub(super) async fn named(desk: &Desk, answers: &Answers, start: &str) -> Result<KnownSession, Failure> {
    let sessions = known(desk, answers).await?;
    let begins = |session: &&KnownSession| session.id.as_str().starts_with(start);
    let found: Vec<&KnownSession> = sessions.iter().filter(begins).collect();
    match found[..] {
        [only] => Ok(only.clone()),
        [] => {
            let unknown = || {
                Failure::new(Exit::Failed, format!("no session whose id begins with {start} is known here"))
                    .next("`countersign sessions` lists them")
            };
            let id: SessionId = start.parse().map_err(|_| unknown())?;
            let reported = desk.approver.session(&id).await.map_err(|_| unknown())?;
            let mut session = KnownSession::new(id);
            complete(&mut session, &reported, desk);
            Ok(session)
        }
        _ => Err(Failure::new(Exit::Usage, format!("several sessions begin with {start}"))
            .next("type more of the id")),
    }
}

impl Sessions {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let (desk, answers) = (Desk::open(options)?, answers(options)?);
        match &self.session {
            Some(start) => one(&desk, &named(&desk, &answers, start).await?, options).await,
            None => list(&desk, &answers, options).await,
        }
    }
}

async fn list(desk: &Desk, answers: &Answers, options: &Options) -> Result<(), Failure> {
    let (sessions, now) = (known(desk, answers).await?, desk.approver.clock.now());
    if options.json {
        return object(&json!({ "sessions": sessions.iter().map(KnownSession::json).collect::<Vec<_>>() }));
    }
    if sessions.is_empty() {
        say("No agent is at work, as far as this device knows.");
        return Ok(());
    }
    out(&sessions.iter().map(|session| session.entry(now)).collect::<Vec<_>>().join("\n"))
}

async fn one(desk: &Desk, known: &KnownSession, options: &Options) -> Result<(), Failure> {
    let session = desk.approver.session(&known.id).await.map_err(|error| describe(&error))?;
    let snapshots: Vec<Opened> =
        session.snapshots.iter().map(|(kind, event)| open(desk, kind, event)).collect();
    if options.json {
        let snapshots: Vec<_> =
            snapshots.iter().map(|it| json!({ "type": it.kind, "content": it.content })).collect();
        return object(&json!({
            "session": session.session_id, "machine": session.enforcer_id, "agent": session.agent_host,
            "state": session.state, "updatedAt": session.updated_at, "endedAt": session.ended_at, "snapshots": snapshots,
        }));
    }
    out(&known.entry(desk.approver.clock.now()))?;
    for snapshot in snapshots {
        out(&format!("{}:", snapshot.kind))?;
        visible_lines(&snapshot.content).try_for_each(|line| out(&format!("  {line}")))?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_a_name_and_its_id_comes_last() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut session = KnownSession::new("7f3a1c2d-94b3-4a57-8e21-0b9d5c7a3f48".parse().unwrap());
        assert_eq!(session.entry(now), "Untitled task\n  7f3a1c2d");
        session.at = Some("2026-11-14T09:12:00Z".parse().unwrap());
        assert_eq!(session.name(now), "Untitled task · last heard of 14 Nov, 09:12");
        session.task = Some(format!("\n Fix\u{202e} {}\nand more", "x".repeat(100)));
        session.agent = Some("Claude Code".to_owned());
        session.project = Some("shop".to_owned());
        session.machine = Some("build-1".parse().unwrap());
        (session.waiting, session.state) = (2, Some(SessionState::Planning));
        let entry = session.entry(now);
        let (first, second) = entry.split_once('\n').unwrap();
        assert!(first.starts_with("Fix⟨U+202E⟩ xxx") && first.ends_with("x…"), "{first}");
        assert_eq!(second, "  Claude Code · shop · on build-1 · working · 2 waiting for you · 7f3a1c2d");
        session.ended_at = Some(now);
        assert!(session.entry(now).contains("ended 12:00:00"));
        session.end_reason = Some(EndReason::PolicyKill);
        assert!(session.entry(now).contains("stopped 12:00:00"));
    }
}
