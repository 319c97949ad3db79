//! `history`: what this device has answered, and what this machine has asked.

use std::{cmp::Reverse, collections::HashSet};

use clap::Args;
use countersign_agents::{
    asking::scope_word,
    tool::{
        exit::{Exit, Failure},
        gateway_error::{describe, describe_ask},
        home::{Home, Identity},
        moment,
        output::{object, out, say, short},
    },
};
use countersign_client::{
    bundle::Bundle,
    enforcer::{AskError, Enforcer},
    history::Answer as KnownAnswer,
    keys::Fingerprint,
    payload::{Payload, visible, visible_still},
    profile::Role,
    receipt::Outcome,
    request::Request,
};
use countersign_wire::{
    Verbatim,
    artifact::Artifact,
    decision::DecisionOutcome,
    id::{EnforcerId, RequestId},
    parse,
    timestamp::Timestamp,
};
use serde_json::{Value, json};

use super::{inbox::Desk, options::Options};
use crate::{
    answers::{Answers, KeptAnswer},
    review,
};

/// Look back at your answers, and at what this machine asked.
///
/// Newest first, with dates. A device keeps its own answers. With --everywhere, your machines say what you answered on your
/// other devices: the newest 50 on each, for 30 days. A machine keeps what was answered for 30 days.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[derive(Debug, Args)]
pub(super) struct History {
    /// Only what was approved.
    #[arg(long, group = "which")]
    approved: bool,
    /// Only what was rejected.
    #[arg(long, group = "which")]
    rejected: bool,
    /// Only what expired without an answer.
    #[arg(long, group = "which")]
    missed: bool,
    /// Also your answers on other devices, as your machines remember them. Asks for your passphrase.
    #[arg(long, conflicts_with = "missed")]
    everywhere: bool,
    /// How many to show of each.
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 50)]
    count: usize,
}

/// How a request ended, or that it has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Approved,
    Rejected,
    /// It expired without an answer.
    Missed,
    Waiting,
}

impl End {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Missed => "missed",
            Self::Waiting => "waiting",
        }
    }
}

impl From<DecisionOutcome> for End {
    fn from(outcome: DecisionOutcome) -> Self {
        match outcome {
            DecisionOutcome::Approve => Self::Approved,
            DecisionOutcome::Reject => Self::Rejected,
        }
    }
}

/// Something that this machine has asked, or that this device has answered or missed.
#[derive(Debug, Clone)]
pub(super) struct HistoryEntry {
    pub(super) request_id: RequestId,
    /// When it ended, or was asked if it has not.
    pub(super) at: Timestamp,
    pub(super) end: End,
    /// What happens, in one sentence.
    pub(super) sentence: String,
    /// The sentence, and the first line of what was asked.
    pub(super) what: String,
    /// Who answered or asked, and the rest that belongs beside it.
    about: Vec<String>,
    reason: Option<String>,
}

impl HistoryEntry {
    /// A request without an answer.
    pub(super) fn of_open(request: &Request) -> Self {
        let (sentence, what) = described(&request.artifact);
        Self {
            request_id: request.request_id.clone(),
            at: request.expires_at,
            end: End::Waiting,
            sentence,
            what,
            about: Vec::new(),
            reason: None,
        }
    }

    fn of_bundle(bundle: &Bundle) -> Option<Self> {
        let decision: Value = serde_json::from_str(&bundle.decision).ok()?;
        let outcome: DecisionOutcome = serde_json::from_value(decision["decision"].clone()).ok()?;
        let (sentence, what) = described(bundle.artifact.as_deref()?);
        Some(Self {
            request_id: bundle.receipt.request_id.parse().ok()?,
            at: bundle.receipt.at.parse().ok()?,
            end: outcome.into(),
            sentence,
            what,
            about: vec![format!("by {}", visible(&bundle.signer.approver_id))],
            reason: bundle.words.reason.clone(),
        })
    }

    fn of_answer(answer: &KeptAnswer) -> Self {
        let who = [&answer.agent, &answer.project].into_iter().flatten().map(|it| visible(it));
        let scope = match answer.decision {
            DecisionOutcome::Approve => Some(scope_word(answer.scope).to_owned()),
            DecisionOutcome::Reject => None,
        };
        let chosen = answer.action.as_deref().map(|caption| format!("“{}”", visible(caption)));
        let machine = format!("on {}", visible(answer.machine.as_str()));
        Self {
            request_id: answer.request_id.clone(),
            at: answer.at,
            end: answer.decision.into(),
            sentence: visible(&answer.what),
            what: visible(&answer.what),
            about: scope.into_iter().chain(chosen).chain(who).chain([machine]).collect(),
            reason: answer.reason.clone(),
        }
    }

    /// An answer that a machine remembers, of another device.
    fn of_known(answer: &KnownAnswer, machine: &EnforcerId) -> Self {
        let scope = match answer.decision {
            DecisionOutcome::Approve => Some(scope_word(answer.scope).to_owned()),
            DecisionOutcome::Reject => None,
        };
        let chosen = answer.action.as_deref().map(|caption| format!("“{}”", visible(caption)));
        let device =
            Fingerprint::parse(&answer.device).map(|device| format!("with device {}", device.short()));
        let machine = format!("on {}", visible(machine.as_str()));
        let changed = || Some(format!("changed to: {}", answer.change.as_ref()?));
        let not_done = match &answer.outcome {
            Outcome::Refused { reason } => Some(format!("not done: {}", visible(reason))),
            Outcome::Drifted => Some("not done: it had changed".to_owned()),
            Outcome::TooLate => Some("not done: the answer came too late".to_owned()),
            Outcome::Applied { .. } => None,
        };
        Self {
            request_id: answer.request_id.clone(),
            at: answer.at,
            end: answer.decision.into(),
            sentence: visible_still(&answer.sentence),
            what: format!("{} · {}", visible_still(&answer.sentence), visible_still(&answer.headline)),
            about: scope.into_iter().chain(chosen).chain(device).chain([machine]).chain(not_done).collect(),
            reason: answer.reason.clone().or_else(changed),
        }
    }

    fn entry(&self, now: Timestamp) -> String {
        let (end, when) = (self.end.word(), moment::when(self.at, now));
        let until = if self.end == End::Waiting { " until" } else { "" };
        let first = [format!("{end}{until} {when}")];
        let rest = first.into_iter().chain(self.about.iter().cloned()).chain([short(&self.request_id)]);
        let reason = self.reason.as_deref().map(|reason| format!("\n  “{}”", visible(reason)));
        format!("{}\n  {}{}", self.what, rest.collect::<Vec<_>>().join(" · "), reason.unwrap_or_default())
    }

    fn json(&self) -> Value {
        json!({
            "requestId": self.request_id, "at": self.at, "end": self.end.word(), "what": self.what,
            "about": self.about, "reason": self.reason,
        })
    }
}

/// The sentence about an artifact, and its title.
fn described(artifact: &str) -> (String, String) {
    let read: Result<Verbatim<'_, Artifact<'_>>, _> = parse(artifact.as_bytes());
    match read {
        Ok(artifact) => {
            let payload = Payload::read(artifact.artifact_type, &artifact.payload);
            (payload.sentence(), review::title(&payload))
        }
        Err(_) => ("A request that can't be shown".to_owned(), "A request that can't be shown".to_owned()),
    }
}

/// Everything that this machine has asked and that is kept, oldest first: what was answered, then what has no answer.
pub(super) async fn asked(enforcer: &Enforcer) -> Result<Vec<HistoryEntry>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Failed, error);
    let mut asked = Vec::new();
    for name in enforcer.bundles().await.map_err(|error| failed(&error))? {
        let bundle = enforcer.bundle(&name).await.map_err(|error| failed(&error))?;
        asked.extend(bundle.as_ref().and_then(HistoryEntry::of_bundle));
    }
    Ok(asked)
}

async fn unanswered(enforcer: &Enforcer) -> Result<Vec<HistoryEntry>, AskError> {
    let now = enforcer.clock.now();
    let mut open: Vec<HistoryEntry> =
        enforcer.open_requests().await?.iter().map(HistoryEntry::of_open).collect();
    for asked in open.iter_mut().filter(|asked| asked.at <= now) {
        asked.end = End::Missed;
    }
    Ok(open)
}

/// What the machines of this person remember of their answers, on whichever device.
async fn elsewhere(identity: &Identity) -> Result<Vec<HistoryEntry>, Failure> {
    let desk = Desk::of(identity)?;
    let mut items = Vec::new();
    for (machine, answers) in desk.approver.histories(&desk.pins).await {
        match answers {
            Ok(answers) => {
                items.extend(answers.iter().map(|answer| HistoryEntry::of_known(answer, &machine)));
            }
            Err(error) => {
                say(&format!("! What {} remembers can't be read: {error}.", visible(machine.as_str())));
            }
        }
    }
    Ok(items)
}

impl History {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let home = Home::of_user()?;
        let found = |role| home.find(role, options.profile.as_deref());
        let (person, machine) = (found(Role::Approver), found(Role::Enforcer));
        if let (Err(failure), Err(_)) = (&person, &machine) {
            return Err(failure.clone());
        }
        let answered = match &person {
            Ok(identity) => Some(self.answered(&home, identity).await?),
            Err(_) => None,
        };
        let asked = match &machine {
            Ok(identity) => Some(self.asked(identity).await?),
            Err(_) => None,
        };
        if options.json {
            let list = |items: &Option<Vec<HistoryEntry>>| {
                items.as_ref().map(|items| items.iter().map(HistoryEntry::json).collect::<Vec<_>>())
            };
            return object(&json!({ "answered": list(&answered), "asked": list(&asked) }));
        }
        let now = countersign_client::clock::Clock::now(&countersign_client::clock::SystemClock);
        let both = answered.is_some() && asked.is_some();
        let mine = match (self.missed, self.everywhere) {
            (true, _) => "What you missed",
            (false, true) => "Your answers",
            (false, false) => "Your answers on this device",
        };
        for (title, items) in [(mine, answered), ("What this machine asked", asked)] {
            let Some(items) = items else { continue };
            if both {
                say(&format!("{title}:"));
            }
            match items.is_empty() {
                true => say("Nothing yet."),
                false => out(&items.iter().map(|item| item.entry(now)).collect::<Vec<_>>().join("\n"))?,
            }
        }
        Ok(())
    }

    fn wants(&self, end: End) -> bool {
        let all = !(self.approved || self.rejected || self.missed);
        match end {
            End::Approved => all || self.approved,
            End::Rejected => all || self.rejected,
            End::Missed => all || self.missed,
            End::Waiting => all,
        }
    }

    /// The newest of those that are wanted, newest first.
    fn newest(&self, mut items: Vec<HistoryEntry>) -> Vec<HistoryEntry> {
        items.retain(|item| self.wants(item.end));
        items.sort_by_key(|item| Reverse(item.at));
        items.truncate(self.count);
        items
    }

    /// What this person has answered here. What they missed is asked of the gateway, and opened with their keys.
    async fn answered(&self, home: &Home, identity: &Identity) -> Result<Vec<HistoryEntry>, Failure> {
        if self.missed {
            let desk = Desk::of(identity)?;
            let expired = desk.approver.expired(&desk.pins).await.map_err(|error| describe(&error))?;
            let missed = expired.into_iter().filter_map(|item| item.opened.ok()).map(|request| {
                let payload = review::payload(&request);
                HistoryEntry {
                    at: request.expires_at,
                    end: End::Missed,
                    sentence: payload.sentence(),
                    what: review::title(&payload),
                    about: vec![review::who(&request, &payload)],
                    reason: None,
                    request_id: request.request_id,
                }
            });
            return Ok(self.newest(missed.collect()));
        }
        let answers = Answers::of(&home.folder_named(&identity.name)?).read();
        let answers = answers.map_err(|error| Failure::new(Exit::Failed, error))?;
        let mut items: Vec<HistoryEntry> = answers.iter().map(HistoryEntry::of_answer).collect();
        if self.everywhere {
            let own: HashSet<RequestId> = items.iter().map(|item| item.request_id.clone()).collect();
            items.extend(elsewhere(identity).await?.into_iter().filter(|it| !own.contains(&it.request_id)));
        }
        Ok(self.newest(items))
    }

    async fn asked(&self, identity: &Identity) -> Result<Vec<HistoryEntry>, Failure> {
        let enforcer = identity.enforcer()?;
        let mut items = asked(&enforcer).await?;
        items.extend(unanswered(&enforcer).await.map_err(|error| describe_ask(&error))?);
        Ok(self.newest(items))
    }
}
