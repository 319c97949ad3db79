//! Pairing an enforcer with an approver: from a code to a completed pair. Pure.

use std::time::Duration;

use countersign_wire::{
    Label,
    failure::Failure,
    id::{ApproverId, EnforcerId, RoutingToken},
    keys::{PublicKey, VerifyingKey},
    pairing::{PairingStatus, Progress as WireProgress},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

/// For how long a code is good.
pub const CODE_LIFE: Duration = Duration::from_mins(10);

/// One pairing as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    /// Who began it.
    pub enforcer: EnforcerId,
    /// What people call it.
    pub enforcer_label: Option<Label>,
    /// What it works on.
    pub workspace_name: Option<Label>,
    /// The enforcer's keys.
    pub public_key: PublicKey,
    /// The keyed hash of the code, by which it is found.
    pub code_hash: String,
    /// Until when it can be completed.
    pub expires_at: Timestamp,
    /// How far it is.
    pub progress: Progress,
}

/// How far a pairing is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum Progress {
    /// Nobody has typed the code.
    Pending,
    /// This approver has, and no other may from now on.
    Resolved {
        /// Who.
        approver: ApproverId,
    },
    /// Done.
    Completed {
        /// With whom.
        approver: ApproverId,
        /// The approver's keys.
        public_key: PublicKey,
        /// What leads the enforcer's requests there.
        routing_token: RoutingToken,
    },
}

/// Why a pairing does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Unknown, expired, used, or another approver's: all the same to whoever asks.
    NotFound,
    /// It is complete.
    AlreadyCompleted,
}

impl Refusal {
    /// What the client is told.
    pub fn failure(self) -> Failure {
        match self {
            Self::NotFound => Failure::NotFound,
            Self::AlreadyCompleted => Failure::State,
        }
    }
}

impl Pairing {
    fn is_past(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// An approver has typed the code: the progress to store, if it is to change. Whoever may act as any approver
    /// (`None`) has not said as whom, and binds nobody.
    pub fn resolve(&self, by: Option<&ApproverId>, now: Timestamp) -> Result<Option<Progress>, Refusal> {
        match (&self.progress, by) {
            _ if self.is_past(now) => Err(Refusal::NotFound),
            (Progress::Completed { .. }, _) => Err(Refusal::NotFound),
            (Progress::Pending, Some(by)) => Ok(Some(Progress::Resolved { approver: by.clone() })),
            (Progress::Resolved { approver }, Some(by)) if approver != by => Err(Refusal::NotFound),
            (Progress::Pending | Progress::Resolved { .. }, _) => Ok(None),
        }
    }

    /// An approver wants to finish; a prior resolve is not needed.
    pub fn check_completion(&self, by: &ApproverId, now: Timestamp) -> Result<(), Refusal> {
        match &self.progress {
            Progress::Completed { approver, .. } if approver == by => Err(Refusal::AlreadyCompleted),
            Progress::Completed { .. } => Err(Refusal::NotFound),
            _ if self.is_past(now) => Err(Refusal::NotFound),
            Progress::Resolved { approver } if approver != by => Err(Refusal::NotFound),
            Progress::Pending | Progress::Resolved { .. } => Ok(()),
        }
    }

    /// How it stands, as its two parties see it.
    pub fn status(&self, now: Timestamp) -> PairingStatus {
        let progress = match &self.progress {
            Progress::Completed { approver, public_key, routing_token } => WireProgress::Completed {
                approver_id: approver.clone(),
                public_key: public_key.clone(),
                routing_token: routing_token.clone(),
            },
            _ if self.is_past(now) => WireProgress::Expired,
            Progress::Pending => WireProgress::Pending,
            Progress::Resolved { .. } => WireProgress::Resolved,
        };
        PairingStatus { expires_at: self.expires_at, progress }
    }

    /// Says whether `approver` is one of the two parties.
    pub fn has_approver(&self, approver: &ApproverId) -> bool {
        match &self.progress {
            Progress::Pending => false,
            Progress::Resolved { approver: party } | Progress::Completed { approver: party, .. } => {
                party == approver
            }
        }
    }
}

/// A request to nobody in particular goes to all approvers of its enforcer, so there are not more than this.
const MOST_APPROVERS: usize = 100;

/// An approver has so many enforcers at most.
const MOST_ENFORCERS: usize = 1_000;

/// Each key of an approver is tried on each of their decisions: one for every device is enough.
const MOST_KEYS: usize = 16;

/// What is known of an enforcer: its approvers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedEnforcer {
    /// Each once, in the order of pairing.
    pub approvers: Vec<ApproverId>,
}

/// What is known of an approver: its enforcers, and the keys that its decisions may be signed with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedApprover {
    /// Each once, in the order of pairing.
    pub enforcers: Vec<EnforcerId>,
    /// Each once, in the order of registration.
    pub signing_keys: Vec<VerifyingKey>,
}

impl PairedEnforcer {
    /// Adds an approver, once. Says whether there was room.
    pub fn add(&mut self, approver: &ApproverId) -> bool {
        if !self.approvers.contains(approver) {
            self.approvers.push(approver.clone());
        }
        self.approvers.len() <= MOST_APPROVERS
    }
}

impl PairedApprover {
    /// Adds an enforcer, and the signing key of a bundle, each once. Says whether there was room.
    pub fn add(&mut self, enforcer: &EnforcerId, public_key: &PublicKey) -> bool {
        if !self.enforcers.contains(enforcer) {
            self.enforcers.push(enforcer.clone());
        }
        if let PublicKey::Bundle(bundle) = public_key
            && !self.signing_keys.contains(&bundle.signing)
        {
            self.signing_keys.push(bundle.signing);
        }
        self.enforcers.len() <= MOST_ENFORCERS && self.signing_keys.len() <= MOST_KEYS
    }
}

/// Where a routing token leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// To this approver.
    pub approver: ApproverId,
}
