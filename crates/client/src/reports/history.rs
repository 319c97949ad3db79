//! What a person has answered on any of their devices, as the machine that asked has it (docs/history.md).
//!
//! It is sealed to every device of that person, as the newest snapshot of a session of its own, so that a device that was off
//! finds it later. It is the machine's word: another device's signature is not in it.

use std::time::Duration;

use countersign_wire::{
    Verbatim,
    artifact::Artifact,
    decision::{DecisionOutcome, Scope},
    id::{ApproverId, EnforcerId, RequestId, SessionId},
    session::SnapshotType,
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    content::payload::Payload,
    ends::approver::Approver,
    exchange::{
        request::actions_of,
        seal::{Recipient, SealError},
        taken::Taken,
    },
    gateway::http::CallError,
    identity::{
        keys::{DeviceKeys, Fingerprint},
        profile::{Party, Pin, Pins, Role},
    },
    journal::{Kind, Record},
    json,
    reports::{
        receipt::Outcome,
        session::{OpenedSnapshot, SessionError, SnapshotDraft, SnapshotError, named_session, seal_snapshot},
    },
};

/// The namespace of these sessions: the UUID of version 5 of the name `countersign history v1` in the namespace for URLs.
const NAMESPACE: [u8; 16] =
    [0xb7, 0x91, 0x4e, 0x73, 0x18, 0xfc, 0x54, 0x90, 0xa1, 0x3a, 0x95, 0x35, 0xd0, 0xcf, 0x89, 0x0a];

/// The answers of one person that a machine remembers: so many, and for so long.
pub(crate) const MAX_ANSWERS: usize = 50;
pub(crate) const KEPT_FOR: Duration = Duration::from_hours(30 * 24);

/// The longest text of an answer, in characters.
const MAX_TEXT: usize = 200;

/// The most bytes of the answers in one snapshot. The oldest of more are left out.
const MAX_BYTES: usize = 64 << 10;

/// One answer of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
pub struct Answer {
    /// The request that was answered.
    pub request_id: RequestId,
    /// When the machine was done with it, by its clock.
    pub at: Timestamp,
    /// The fingerprint of the device that answered.
    pub device: String,
    /// Whether it was approved or rejected.
    pub decision: DecisionOutcome,
    /// What an approval covers.
    pub scope: Scope,
    /// What it does, in one sentence.
    pub sentence: String,
    /// What was asked, in one line.
    pub headline: String,
    /// The words for the agent.
    #[serde(default, deserialize_with = "json::present", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The caption of the answer that was chosen.
    #[serde(default, deserialize_with = "json::present", skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What the person has made of it, if they changed it.
    #[serde(default, deserialize_with = "json::present", skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// What the machine did.
    pub outcome: Outcome,
}

/// The answers of one person, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", deny_unknown_fields)]
struct History {
    v: u8,
    approver_id: ApproverId,
    answers: Vec<Answer>,
}

json::objects!(Answer, History);

/// Why what a machine remembers is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The gateway refused, or can't be reached.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The snapshot that it is in does not open.
    #[error("the history does not open: {0}")]
    Snapshot(#[from] SnapshotError),
    /// It is of another machine or another person, of another version, or not of this format.
    #[error("the history is not in a format that is known here")]
    Malformed,
}

/// The session that has what the machine with these keys remembers of a person. Both ends know it. Somebody else who knows
/// the machine's keys, and has a machine, can take it first, so that the gateway refuses it to this one.
pub fn history_session(machine: Fingerprint, approver: &ApproverId) -> SessionId {
    named_session(NAMESPACE, &format!("{machine}/{approver}"))
}

/// A text as it is kept, not longer than others. Whoever shows it makes it visible.
fn brief(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The key of an answer in the journal. Those of one person sort by time.
fn key(approver: &ApproverId, at: Timestamp, request_id: &RequestId) -> String {
    format!("{}{:020}/{request_id}", prefix(approver), at.unix_micros().max(0))
}

fn prefix(approver: &ApproverId) -> String {
    // No id has a line break.
    format!("{approver}\n")
}

impl Answer {
    /// What is remembered of a decision that was acted on.
    fn of(taken: &Taken, outcome: &Outcome, at: Timestamp) -> Option<Self> {
        let artifact: Verbatim<'_, Artifact<'_>> =
            countersign_wire::parse(taken.decided.artifact.as_bytes()).ok()?;
        let payload = Payload::read(artifact.artifact_type, &artifact.payload);
        let words = &taken.decision.words;
        let caption = |id: &String| {
            let action = actions_of(&artifact).into_iter().find(|action| action.id == *id);
            action.map_or_else(|| id.clone(), |action| action.caption)
        };
        Some(Self {
            request_id: taken.request_id.clone(),
            at,
            device: taken.decision.device.to_string(),
            decision: taken.decision.outcome,
            scope: taken.decision.scope,
            sentence: brief(&payload.sentence()),
            headline: brief(&payload.headline()),
            reason: words.reason.as_deref().map(brief),
            action: words.action.as_ref().map(caption).as_deref().map(brief),
            change: words.edit.as_ref().and_then(|edit| edit.0.values().next()).map(|text| brief(text)),
            outcome: match outcome {
                Outcome::Refused { reason } => Outcome::Refused { reason: brief(reason) },
                outcome => outcome.clone(),
            },
        })
    }
}

/// What the journal remembers of an answer. Further uses of an approval are no further answers.
pub(crate) fn record(taken: &Taken, outcome: &Outcome, now: Timestamp) -> Option<Record> {
    let answer = Answer::of(taken, outcome, now).filter(|_| taken.number == 1)?;
    let Ok(value) = serde_json::to_string(&answer) else { unreachable!("texts can be written as JSON") };
    Some(Record {
        kind: Kind::Answered,
        key: key(&taken.decision.approver, now, &taken.request_id),
        value: Zeroizing::new(value),
        keep_until: now.plus(KEPT_FOR),
    })
}

/// The records of this person among those of the journal that are to be remembered still, newest first.
pub(crate) fn of_person(records: Vec<Record>, approver: &ApproverId, now: Timestamp) -> Vec<Record> {
    let prefix = prefix(approver);
    let is_own = |record: &Record| record.key.starts_with(&prefix) && record.keep_until > now;
    let mut own: Vec<Record> = records.into_iter().filter(is_own).collect();
    own.reverse();
    own
}

/// The event that tells these devices of a person what they have answered, as JSON. The records are newest first.
pub(crate) fn event(
    records: &[Record],
    approver: &ApproverId,
    (enforcer, keys): (&EnforcerId, &DeviceKeys),
    recipients: &[Recipient<'_>],
    now: Timestamp,
) -> Result<String, SessionError> {
    let mut bytes = 0;
    let fits = |record: &&Record| {
        bytes += record.value.len();
        bytes <= MAX_BYTES
    };
    let read = |record: &Record| serde_json::from_str::<Answer>(&record.value).ok();
    let answers = records.iter().take(MAX_ANSWERS).take_while(fits).filter_map(read).collect();
    let history = History { v: 1, approver_id: approver.clone(), answers };
    let Ok(payload) = serde_json::to_string(&history).map(Zeroizing::new) else {
        unreachable!("texts can be written as JSON")
    };
    let draft = SnapshotDraft {
        session_id: &history_session(keys.fingerprint(), approver),
        snapshot_id: &format!("history-{}", now.unix_micros().max(0)),
        snapshot_type: SnapshotType::Summary,
        payload: &payload,
    };
    seal_snapshot(draft, enforcer, keys, recipients, now)
}

/// Whether the texts of an answer are as long as a machine writes them at most, with what they are cut with.
fn is_brief(answer: &Answer) -> bool {
    let optional = [&answer.reason, &answer.action, &answer.change].into_iter().flatten();
    let texts = [&answer.device, &answer.sentence, &answer.headline].into_iter().chain(optional);
    texts.into_iter().all(|text| text.chars().count() <= MAX_TEXT + 1)
}

/// The answers in a snapshot that was opened, newest first, if it is what this machine remembers of this person.
fn open(
    snapshot: &OpenedSnapshot,
    machine: &Pin,
    approver: &ApproverId,
) -> Result<Vec<Answer>, HistoryError> {
    let history: History = serde_json::from_str(&snapshot.payload).map_err(|_| HistoryError::Malformed)?;
    let is_own = snapshot.sent_by.fingerprint() == machine.fingerprint()
        && snapshot.session_id == history_session(machine.fingerprint(), approver)
        && history.approver_id == *approver
        && history.v == 1
        && history.answers.len() <= MAX_ANSWERS
        && history.answers.iter().all(is_brief);
    is_own.then_some(history.answers).ok_or(HistoryError::Malformed)
}

impl Approver {
    /// What each paired machine remembers of this person's answers, on whichever device, newest first. A machine that
    /// remembers nothing, or was not asked because the gateway could not be reached, has no entry.
    pub async fn histories(&self, pins: &Pins) -> Vec<(EnforcerId, Result<Vec<Answer>, HistoryError>)> {
        let mut histories = Vec::new();
        for machine in pins.active_in_role(Role::Enforcer, self.clock.now()) {
            let Party::Enforcer(id) = machine.party() else { continue };
            match self.history(machine, pins).await {
                Ok(None) => {}
                Ok(Some(answers)) => histories.push((id.clone(), Ok(answers))),
                Err(error) => {
                    let is_away = matches!(error, HistoryError::Call(CallError::Unreachable { .. }));
                    histories.push((id.clone(), Err(error)));
                    if is_away {
                        break;
                    }
                }
            }
        }
        histories
    }

    async fn history(&self, machine: &Pin, pins: &Pins) -> Result<Option<Vec<Answer>>, HistoryError> {
        let session = match self.session(&history_session(machine.fingerprint(), &self.id)).await {
            Err(CallError::Refused { status: 404, .. }) => return Ok(None),
            session => session?,
        };
        let Some(event) = session.snapshots.get(SnapshotType::Summary.as_str()) else { return Ok(None) };
        match OpenedSnapshot::open(event, self.id.as_str(), &self.keys, pins, self.clock.now()) {
            // It was sealed before this device was connected.
            Err(SnapshotError::Seal(SealError::NotForThisDevice)) => Ok(None),
            opened => open(&opened?, machine, &self.id).map(Some),
        }
    }
}

#[cfg(test)]
mod tests;
