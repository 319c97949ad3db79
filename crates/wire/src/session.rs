//! Events of an agent's session (docs/protocol.md#prompts-and-sessions).

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
    /// The four kinds of event, as `eventType` names them.
    pub enum EventType {
        /// The session starts; events may arrive before it.
        Start = "session.start",
        /// A summary, plan, diff or context of the session.
        Snapshot = "session.snapshot",
        /// The current activity of the session.
        Status = "session.status",
        /// The session has ended; later events are rejected.
        End = "session.end",
    }

    /// The content of a snapshot; a session keeps the latest of each type.
    pub enum SnapshotType {
        /// A summary of the session so far.
        Summary = "summary",
        /// The agent's plan for the session.
        Plan = "plan",
        /// A summary of the file changes so far.
        DiffSummary = "diff_summary",
        /// The context that the agent works with.
        Context = "context",
    }

    /// The activity of a session.
    pub enum SessionState {
        /// The agent waits for input.
        Idle = "idle",
        /// The agent plans its next steps.
        Planning = "planning",
        /// The agent changes files.
        Editing = "editing",
        /// The agent runs a command or tool.
        Executing = "executing",
        /// The agent waits for a decision.
        WaitingApproval = "waiting_approval",
        /// The agent has failed; the session may continue.
        Error = "error",
    }

    /// Why a session ended.
    pub enum EndReason {
        /// The user of the agent ended it.
        UserEnd = "user_end",
        /// The session was inactive for too long.
        Timeout = "timeout",
        /// A policy ended it, not its user.
        PolicyKill = "policy_kill",
    }
}

/// One session event; also the body of a `session.*` envelope.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "eventType")]
pub enum SessionEvent<'a> {
    /// The session starts; other events may arrive before it.
    #[serde(rename = "session.start")]
    Start(SessionStart<'a>),
    /// A summary, plan, diff or context of the session.
    #[serde(rename = "session.snapshot")]
    Snapshot(SessionSnapshot<'a>),
    /// The current activity of the session.
    #[serde(rename = "session.status")]
    Status(SessionStatus<'a>),
    /// The session has ended; later events are rejected.
    #[serde(rename = "session.end")]
    End(SessionEnd<'a>),
}

impl SessionEvent<'_> {
    /// The session that the event belongs to.
    pub fn session_id(&self) -> &SessionId {
        match self {
            Self::Start(event) => &event.session_id,
            Self::Snapshot(event) => &event.session_id,
            Self::Status(event) => &event.session_id,
            Self::End(event) => &event.session_id,
        }
    }

    /// The kind of this event.
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
    /// Whether it is a snapshot with an encrypted payload.
    pub fn is_sealed(&self) -> bool {
        let SessionEvent::Snapshot(snapshot) = &**self else { return false };
        snapshot.payload.members().is_ok_and(|members| members.contains(CIPHERTEXT))
    }

    /// Hashes the received text of a snapshot with an open payload and compares; other events pass.
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

/// The body of `session.start`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStart<'a> {
    /// The id of the session, chosen by its enforcer.
    pub session_id: SessionId,
    /// The time of the event by the enforcer's clock; an older event does not replace newer data.
    pub created_at: Timestamp,
    /// The program that the agent runs in.
    pub agent_host: String,
    /// A repository reference that the participants agreed on; absent if none applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo_ref: Option<String>,
    /// Further data for approvers; absent if there is none.
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

/// The body of `session.snapshot`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSnapshot<'a> {
    /// The id of the session, chosen by its enforcer.
    pub session_id: SessionId,
    /// The id of the snapshot, unique within its session.
    pub snapshot_id: SnapshotId,
    /// The kind of content in `payload`.
    pub snapshot_type: SnapshotType,
    /// The time of the event by the enforcer's clock; an older event does not replace newer data.
    pub created_at: Timestamp,
    /// The content; encrypted if it has a member `ciphertext`.
    pub payload: RawObject<'a>,
    /// The algorithm of `snapshot_hash`.
    pub snapshot_hash_alg: HashAlg,
    /// SHA-256 of the canonical snapshot without this member.
    pub snapshot_hash: Sha256Hex,
    /// Further data, covered by the hash; absent if there is none.
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

/// The body of `session.status`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus<'a> {
    /// The id of the session, chosen by its enforcer.
    pub session_id: SessionId,
    /// The activity from `updated_at` on.
    pub state: SessionState,
    /// When the activity started, by the enforcer's clock; an older event does not replace newer data.
    pub updated_at: Timestamp,
    /// Further data for approvers; absent if there is none.
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

/// The body of `session.end`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEnd<'a> {
    /// The id of the session, chosen by its enforcer.
    pub session_id: SessionId,
    /// The time of the event by the enforcer's clock; an older event does not replace newer data.
    pub ended_at: Timestamp,
    /// Why the session ended.
    pub reason: EndReason,
    /// Further data for approvers; absent if there is none.
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
