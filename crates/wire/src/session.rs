//! What an agent's session reports (section 2.8).

use serde::Serialize;

use crate::{
    Error, FromMembers, Members, RawObject, Verbatim,
    hash::{HashAlg, Sha256Hex},
    id::{SessionId, SnapshotId},
    raw::CIPHERTEXT,
    timestamp::Timestamp,
    vocabulary::vocabulary,
};

vocabulary! {
    /// The four events.
    pub enum EventType {
        /// It begins.
        Start = "session.start",
        /// What it is about right now.
        Snapshot = "session.snapshot",
        /// What it is doing right now.
        Status = "session.status",
        /// It is over.
        End = "session.end",
    }

    /// What a snapshot shows.
    pub enum SnapshotType {
        /// A summary.
        Summary = "summary",
        /// The plan.
        Plan = "plan",
        /// The changes so far.
        DiffSummary = "diff_summary",
        /// What the agent knows.
        Context = "context",
    }

    /// What a session is doing.
    pub enum State {
        /// Nothing.
        Idle = "idle",
        /// Thinking.
        Planning = "planning",
        /// Changing files.
        Editing = "editing",
        /// Running something.
        Executing = "executing",
        /// Waiting for a person.
        WaitingApproval = "waiting_approval",
        /// It failed.
        Error = "error",
    }

    /// Why a session ended.
    pub enum EndReason {
        /// Its user ended it.
        UserEnd = "user_end",
        /// Nothing came.
        Timeout = "timeout",
        /// A policy ended it.
        PolicyKill = "policy_kill",
    }
}

/// One event.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "eventType")]
pub enum SessionEvent<'a> {
    /// It begins.
    #[serde(rename = "session.start")]
    Start(SessionStart<'a>),
    /// What it is about right now.
    #[serde(rename = "session.snapshot")]
    Snapshot(SessionSnapshot<'a>),
    /// What it is doing right now.
    #[serde(rename = "session.status")]
    Status(SessionStatus<'a>),
    /// It is over.
    #[serde(rename = "session.end")]
    End(SessionEnd<'a>),
}

impl SessionEvent<'_> {
    /// The session that it tells of.
    pub fn session_id(&self) -> &SessionId {
        match self {
            Self::Start(event) => &event.session_id,
            Self::Snapshot(event) => &event.session_id,
            Self::Status(event) => &event.session_id,
            Self::End(event) => &event.session_id,
        }
    }

    /// Which of the four it is.
    pub fn event_type(&self) -> EventType {
        match self {
            Self::Start(_) => EventType::Start,
            Self::Snapshot(_) => EventType::Snapshot,
            Self::Status(_) => EventType::Status,
            Self::End(_) => EventType::End,
        }
    }
}

impl<'a> Verbatim<'a, SessionEvent<'a>> {
    /// Whether it is a snapshot whose payload only its readers can read.
    pub fn is_sealed(&self) -> bool {
        let SessionEvent::Snapshot(snapshot) = &**self else { return false };
        snapshot.payload.members().is_ok_and(|members| members.contains(CIPHERTEXT))
    }

    /// Hashes a snapshot whose payload is in the clear and compares; anything else passes.
    pub fn check_hash(&self) -> Result<(), Error> {
        match &**self {
            SessionEvent::Snapshot(snapshot) if !self.is_sealed() => {
                snapshot.snapshot_hash.check(self.raw(), "snapshotHash")
            }
            _ => Ok(()),
        }
    }
}

impl<'a> FromMembers<'a> for SessionEvent<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        let event = match members.required("eventType")? {
            EventType::Start => Self::Start(SessionStart::from_members(members)?),
            EventType::Snapshot => Self::Snapshot(SessionSnapshot::from_members(members)?),
            EventType::Status => Self::Status(SessionStatus::from_members(members)?),
            EventType::End => Self::End(SessionEnd::from_members(members)?),
        };
        members.close()?;
        Ok(event)
    }
}

/// A session begins.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStart<'a> {
    /// The session.
    pub session_id: SessionId,
    /// When, by the enforcer's clock.
    pub created_at: Timestamp,
    /// The program that the agent runs in.
    pub agent_host: String,
    /// A repository reference that the participants agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo_ref: Option<String>,
    /// Whatever else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject<'a>>,
}

impl<'a> FromMembers<'a> for SessionStart<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        Ok(Self {
            session_id: members.required("sessionId")?,
            created_at: members.required("createdAt")?,
            agent_host: members.required("agentHost")?,
            repo_ref: members.optional("repoRef")?,
            metadata: members.optional("metadata")?,
        })
    }
}

/// What a session is about right now.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSnapshot<'a> {
    /// The session.
    pub session_id: SessionId,
    /// Names the snapshot.
    pub snapshot_id: SnapshotId,
    /// What it shows.
    pub snapshot_type: SnapshotType,
    /// When, by the enforcer's clock.
    pub created_at: Timestamp,
    /// The content; sealed when it has a member `ciphertext`.
    pub payload: RawObject<'a>,
    /// How `snapshot_hash` was made.
    pub snapshot_hash_alg: HashAlg,
    /// SHA-256 of the canonical snapshot without this member.
    pub snapshot_hash: Sha256Hex,
    /// Part of the hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject<'a>>,
}

impl<'a> FromMembers<'a> for SessionSnapshot<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        Ok(Self {
            session_id: members.required("sessionId")?,
            snapshot_id: members.required("snapshotId")?,
            snapshot_type: members.required("snapshotType")?,
            created_at: members.required("createdAt")?,
            payload: members.required("payload")?,
            snapshot_hash_alg: members.required("snapshotHashAlg")?,
            snapshot_hash: members.required("snapshotHash")?,
            metadata: members.optional("metadata")?,
        })
    }
}

/// What a session is doing right now.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus<'a> {
    /// The session.
    pub session_id: SessionId,
    /// What it is doing.
    pub state: State,
    /// Since when, by the enforcer's clock.
    pub updated_at: Timestamp,
    /// Whatever else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<RawObject<'a>>,
}

impl<'a> FromMembers<'a> for SessionStatus<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        Ok(Self {
            session_id: members.required("sessionId")?,
            state: members.required("state")?,
            updated_at: members.required("updatedAt")?,
            details: members.optional("details")?,
        })
    }
}

/// A session is over.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEnd<'a> {
    /// The session.
    pub session_id: SessionId,
    /// When, by the enforcer's clock.
    pub ended_at: Timestamp,
    /// Why.
    pub reason: EndReason,
    /// Whatever else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RawObject<'a>>,
}

impl<'a> FromMembers<'a> for SessionEnd<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        Ok(Self {
            session_id: members.required("sessionId")?,
            ended_at: members.required("endedAt")?,
            reason: members.required("reason")?,
            metadata: members.optional("metadata")?,
        })
    }
}
