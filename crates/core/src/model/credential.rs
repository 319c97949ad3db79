//! Credentials of a tenant, stored as the hash of their secret.

use countersign_wire::{
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::store::{Kind, Stored};

/// What a credential is for. `None` as the id is a wildcard: any id of that role.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "role", content = "id", rename_all = "camelCase")]
pub enum Role {
    /// Submits, waits and withdraws; can never decide.
    Enforcer(Option<EnforcerId>),
    /// Reviews and decides; can never submit.
    Approver(Option<ApproverId>),
    /// Runs the tenant: keys, policy, cancelling. Can neither submit nor decide.
    Operator,
}

/// A credential as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    pub role: Role,
    /// SHA-256 of the secret part of the key.
    pub secret_hash: Sha256Hex,
    pub created_at: Timestamp,
    /// `None` while it is active.
    pub revoked_at: Option<Timestamp>,
}

impl Stored for Credential {
    const KIND: Kind = Kind::Credential;
}

impl Credential {
    pub(crate) fn is_active(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none_or(|at| now < at)
    }
}
