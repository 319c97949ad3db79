//! Pairing an enforcer with an approver: from a code to a completed pair. Pure.

use std::time::Duration;

use countersign_wire::{
    Label,
    failure::Failure,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, PairingNonce, RoutingToken},
    keys::{PublicKey, VerifyingKey},
    pairing::{PairingCode, PairingStatus, Progress as WireProgress},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::store::{Key, Kind, Stored};

/// How long a code can be used.
pub const CODE_LIFE: Duration = Duration::from_mins(10);

/// One pairing as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    pub enforcer: EnforcerId,
    pub enforcer_label: Option<Label>,
    pub workspace_name: Option<Label>,
    /// The enforcer's key bundle, or whatever text it sent instead.
    pub public_key: PublicKey,
    /// The keyed hash of the code, which names the record that leads here.
    pub code_hash: String,
    /// It can be completed only before this time.
    pub expires_at: Timestamp,
    pub progress: Progress,
}

impl Stored for Pairing {
    const KIND: Kind = Kind::Pairing;
}

/// How far a pairing has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum Progress {
    /// Nobody has resolved the code.
    Pending,
    /// This approver has resolved the code; no other can from now on.
    Resolved { approver: ApproverId },
    Completed {
        approver: ApproverId,
        /// The approver's key bundle, or whatever text it sent instead.
        public_key: PublicKey,
        /// Routes the enforcer's requests to this approver.
        routing_token: RoutingToken,
    },
}

/// Why a step of a pairing is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// Unknown, expired, used, or another approver's: the caller can't tell which.
    #[error("not found")]
    NotFound,
    #[error("already completed")]
    AlreadyCompleted,
}

impl PairingError {
    /// The failure that the client sees.
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

    /// An approver has typed the code: the progress to store, or `None` if nothing changes. A wildcard credential
    /// (`by` is `None`) names no approver and binds nobody.
    pub fn resolve(&self, by: Option<&ApproverId>, now: Timestamp) -> Result<Option<Progress>, PairingError> {
        match (&self.progress, by) {
            _ if self.is_past(now) => Err(PairingError::NotFound),
            (Progress::Completed { .. }, _) => Err(PairingError::NotFound),
            (Progress::Pending, Some(by)) => Ok(Some(Progress::Resolved { approver: by.clone() })),
            (Progress::Resolved { approver }, Some(by)) if approver != by => Err(PairingError::NotFound),
            (Progress::Pending | Progress::Resolved { .. }, _) => Ok(None),
        }
    }

    /// Whether `by` may complete the pairing; a prior resolve is not needed.
    pub fn check_completion(&self, by: &ApproverId, now: Timestamp) -> Result<(), PairingError> {
        match &self.progress {
            Progress::Completed { .. } => Err(PairingError::AlreadyCompleted),
            _ if self.is_past(now) => Err(PairingError::NotFound),
            Progress::Resolved { approver } if approver != by => Err(PairingError::NotFound),
            Progress::Pending | Progress::Resolved { .. } => Ok(()),
        }
    }

    /// The status as its two parties see it.
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

    /// Whether `approver` is one of the two parties.
    pub fn has_approver(&self, approver: &ApproverId) -> bool {
        match &self.progress {
            Progress::Pending => false,
            Progress::Resolved { approver: party } | Progress::Completed { approver: party, .. } => {
                party == approver
            }
        }
    }
}

/// A request that names no approver goes to all approvers of its enforcer, so their number is limited.
const MAX_APPROVERS: usize = 100;

const MAX_ENFORCERS: usize = 1_000;

/// Each key of an approver is tried on each of their decisions: one for every device is enough.
const MAX_SIGNING_KEYS: usize = 16;

/// The approvers that an enforcer is paired with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedEnforcer {
    /// Each once, in the order of pairing.
    pub approvers: Vec<ApproverId>,
}

/// The enforcers that an approver is paired with, and the keys that its decisions may be signed with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedApprover {
    /// Each once, in the order of pairing.
    pub enforcers: Vec<EnforcerId>,
    /// Each once, in the order of registration.
    pub signing_keys: Vec<VerifyingKey>,
    /// Whether a signing key was ever registered: then unsigned decisions stay rejected, also when all are removed.
    #[serde(default)]
    pub had_signing_key: bool,
}

impl Stored for PairedEnforcer {
    const KIND: Kind = Kind::Enforcer;
}

impl Stored for PairedApprover {
    const KIND: Kind = Kind::Approver;
}

impl PairedEnforcer {
    /// Adds an approver, once. Returns false if the limit is exceeded.
    pub fn add(&mut self, approver: &ApproverId) -> bool {
        if !self.approvers.contains(approver) {
            self.approvers.push(approver.clone());
        }
        self.approvers.len() <= MAX_APPROVERS
    }
}

impl PairedApprover {
    /// Adds an enforcer, and the signing key of a bundle, each once. Returns false if a limit is exceeded.
    pub fn add(&mut self, enforcer: &EnforcerId, public_key: &PublicKey) -> bool {
        if !self.enforcers.contains(enforcer) {
            self.enforcers.push(enforcer.clone());
        }
        if let PublicKey::Bundle(bundle) = public_key
            && !self.signing_keys.contains(&bundle.signing)
        {
            self.signing_keys.push(bundle.signing);
            self.had_signing_key = true;
        }
        self.enforcers.len() <= MAX_ENFORCERS && self.signing_keys.len() <= MAX_SIGNING_KEYS
    }
}

/// The approver behind a routing token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    pub approver: ApproverId,
}

impl Stored for Route {
    const KIND: Kind = Kind::Route;
}

/// The pairing behind a code.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CodePointer {
    pub(crate) nonce: PairingNonce,
}

impl Stored for CodePointer {
    const KIND: Kind = Kind::PairingCode;
}

/// The key of the hash under which codes are stored: codes are short, and a reader of the store could try all of them.
#[derive(Clone)]
pub struct CodeKey(pub [u8; 32]);

impl std::fmt::Debug for CodeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CodeKey(…)")
    }
}

impl CodeKey {
    /// SHA-256 over key and code. Both have a fixed length, so nothing can be appended.
    pub(crate) fn hash(&self, code: PairingCode) -> String {
        Sha256Hex::digest(&[self.0.as_slice(), code.letters()].concat()).to_string()
    }
}

/// The record that a code's keyed hash names.
pub(crate) fn code_record(code_hash: &str) -> Key {
    CodePointer::key(code_hash)
}

/// A principal may fail this often within [`FAILED_ATTEMPTS_WINDOW`].
pub(crate) const MAX_FAILED_ATTEMPTS: u32 = 5;

/// How long failed attempts count, from the first.
pub(crate) const FAILED_ATTEMPTS_WINDOW: Duration = Duration::from_mins(10);

/// How often one principal has tried codes that were wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCodeAttempts {
    pub count: u32,
    /// The count starts again at this time.
    pub until: Timestamp,
}

impl Stored for FailedCodeAttempts {
    const KIND: Kind = Kind::FailedCodeAttempts;
}
