//! Sessions of agents, told by their events, which may come in any order before the end. Pure.

use std::collections::BTreeMap;

use countersign_wire::{
    failure::Failure,
    hash::Sha256Hex,
    id::{EnforcerId, SnapshotId},
    session::{EndReason, SessionEvent, SnapshotType, State as Activity},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::store::PayloadId;

/// One session as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Whose agent it is.
    pub enforcer: EnforcerId,
    /// The program that the agent runs in.
    pub agent_host: Option<String>,
    /// What it works on.
    pub repo_ref: Option<String>,
    /// What it is doing.
    pub activity: Option<Activity>,
    /// When it began, by its own word.
    pub created_at: Option<Timestamp>,
    /// When it last told of its activity, by its own word.
    pub updated_at: Option<Timestamp>,
    /// How it ended.
    pub end: Option<End>,
    /// Until when it is kept: some time after its last event.
    pub kept_until: Option<Timestamp>,
    /// The latest snapshot of each type.
    pub snapshots: BTreeMap<SnapshotType, Snapshot>,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When, by its own word.
    pub at: Timestamp,
    /// Why.
    pub reason: EndReason,
}

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Which one.
    pub id: SnapshotId,
    /// What it says.
    pub hash: Sha256Hex,
    /// When, by its own word.
    pub created_at: Timestamp,
    /// The event as it was sent.
    pub event: PayloadId,
}

/// Why an event is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The session is over.
    Closed,
    /// The snapshot id belongs to another snapshot.
    DuplicateSnapshot,
    /// The session is another enforcer's.
    NotFound,
}

impl Refusal {
    /// What the client is told.
    pub fn failure(self) -> Failure {
        match self {
            Self::Closed => Failure::SessionClosed,
            Self::DuplicateSnapshot => Failure::DuplicateSnapshot,
            Self::NotFound => Failure::NotFound,
        }
    }
}

impl Session {
    /// A session of which nothing is known yet.
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
        }
    }

    /// Takes in a new event. What is older than what is known does not undo it.
    pub fn apply(&mut self, event: &SessionEvent<'_>, stored_as: PayloadId) -> Result<(), Refusal> {
        if self.end.is_some() {
            return Err(Refusal::Closed);
        }
        match event {
            SessionEvent::Start(start) => {
                if self.created_at.is_none_or(|known| known <= start.created_at) {
                    self.agent_host = Some(start.agent_host.clone());
                    self.repo_ref.clone_from(&start.repo_ref);
                    self.created_at = Some(start.created_at);
                }
            }
            SessionEvent::Status(status) => {
                if self.updated_at.is_none_or(|known| known <= status.updated_at) {
                    self.activity = Some(status.state);
                    self.updated_at = Some(status.updated_at);
                }
            }
            SessionEvent::Snapshot(snapshot) => {
                let known = self.snapshots.get(&snapshot.snapshot_type);
                if known.is_none_or(|known| known.created_at <= snapshot.created_at) {
                    let latest = Snapshot {
                        id: snapshot.snapshot_id.clone(),
                        hash: snapshot.snapshot_hash,
                        created_at: snapshot.created_at,
                        event: stored_as,
                    };
                    self.snapshots.insert(snapshot.snapshot_type, latest);
                }
            }
            SessionEvent::End(end) => self.end = Some(End { at: end.ended_at, reason: end.reason }),
        }
        Ok(())
    }
}
