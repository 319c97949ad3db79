//! Agents' sessions, built from their events, which may arrive in any order before the end. Pure.

use std::collections::BTreeMap;

use countersign_wire::{
    failure::Failure,
    hash::Sha256Hex,
    id::{EnforcerId, MsgId, SnapshotId},
    session::{EndReason, SessionEvent, SessionState, SnapshotType},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::store::{Kind, PayloadId, Stored};

/// One session as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The enforcer that reports it.
    pub enforcer: EnforcerId,
    /// The program that the agent runs in.
    pub agent_host: Option<String>,
    pub repo_ref: Option<String>,
    /// `None` until the first `session.status`.
    pub activity: Option<SessionState>,
    /// When it started, by the enforcer's clock; `None` until `session.start`.
    pub created_at: Option<Timestamp>,
    /// The time of the newest `session.status`, by the enforcer's clock.
    pub updated_at: Option<Timestamp>,
    /// `None` until `session.end`.
    pub end: Option<End>,
    /// When it may be deleted: retention after its last event.
    pub kept_until: Option<Timestamp>,
    /// The latest snapshot of each type.
    pub snapshots: BTreeMap<SnapshotType, Snapshot>,
    /// The newest message of each kind, which the next one of its kind replaces: by event type, and for snapshots by
    /// snapshot type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outstanding: BTreeMap<String, MsgId>,
    /// The text of each of these, by the same kinds: it goes when the next one replaces it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bodies: BTreeMap<String, PayloadId>,
}

impl Stored for Session {
    const KIND: Kind = Kind::Session;
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// By the enforcer's clock.
    pub at: Timestamp,
    pub reason: EndReason,
}

/// The latest snapshot of its type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub id: SnapshotId,
    pub hash: Sha256Hex,
    /// By the enforcer's clock.
    pub created_at: Timestamp,
    /// The event as it was sent.
    pub event: PayloadId,
}

/// An event that was recorded, so that it is recorded once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// SHA-256 of its canonical form; of a snapshot, its own hash.
    pub digest: Sha256Hex,
    /// The event as it was sent; nothing is there any more, or never was, once a newer one of its kind is known.
    pub event: PayloadId,
}

impl Stored for RecordedEvent {
    const KIND: Kind = Kind::SessionEvent;
}

/// Why an event is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error("the session has ended")]
    Closed,
    #[error("the snapshot id belongs to another snapshot")]
    DuplicateSnapshot,
    /// The session is another enforcer's.
    #[error("not found")]
    NotFound,
}

impl SessionError {
    /// The failure that the client sees.
    pub fn failure(self) -> Failure {
        match self {
            Self::Closed => Failure::SessionClosed,
            Self::DuplicateSnapshot => Failure::DuplicateSnapshot,
            Self::NotFound => Failure::NotFound,
        }
    }
}

impl Session {
    /// A session without events.
    pub fn new(enforcer: EnforcerId) -> Self {
        Self {
            enforcer,
            agent_host: None,
            repo_ref: None,
            activity: None,
            created_at: None,
            updated_at: None,
            end: None,
            kept_until: None,
            snapshots: BTreeMap::new(),
            outstanding: BTreeMap::new(),
            bodies: BTreeMap::new(),
        }
    }

    /// Whether anybody has said that it runs, or that it has ended. What has snapshots only is about an exchange, such as a receipt.
    pub fn is_of_an_agent(&self) -> bool {
        self.created_at.is_some() || self.activity.is_some() || self.end.is_some()
    }

    /// Applies a new event. An older event does not overwrite a newer one. Returns whether it is the newest of its kind.
    pub fn apply(&mut self, event: &SessionEvent<'_>, stored_as: PayloadId) -> Result<bool, SessionError> {
        if self.end.is_some() {
            return Err(SessionError::Closed);
        }
        let is_newest = match event {
            SessionEvent::Start(start) => {
                let is_newest = self.created_at.is_none_or(|known| known <= start.created_at);
                if is_newest {
                    self.agent_host = Some(start.agent_host.clone());
                    self.repo_ref.clone_from(&start.repo_ref);
                    self.created_at = Some(start.created_at);
                }
                is_newest
            }
            SessionEvent::Status(status) => {
                let is_newest = self.updated_at.is_none_or(|known| known <= status.updated_at);
                if is_newest {
                    self.activity = Some(status.state);
                    self.updated_at = Some(status.updated_at);
                }
                is_newest
            }
            SessionEvent::Snapshot(snapshot) => {
                let known = self.snapshots.get(&snapshot.snapshot_type);
                let is_newest = known.is_none_or(|known| known.created_at <= snapshot.created_at);
                if is_newest {
                    let latest = Snapshot {
                        id: snapshot.snapshot_id.clone(),
                        hash: snapshot.snapshot_hash,
                        created_at: snapshot.created_at,
                        event: stored_as,
                    };
                    self.snapshots.insert(snapshot.snapshot_type, latest);
                }
                is_newest
            }
            SessionEvent::End(end) => {
                self.end = Some(End { at: end.ended_at, reason: end.reason });
                true
            }
        };
        Ok(is_newest)
    }
}
