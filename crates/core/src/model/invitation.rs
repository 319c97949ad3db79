//! Invitations: what an operator gives somebody so that they can make an API key of their own.

use std::time::Duration;

use countersign_wire::{
    Label,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::credential::Role;
use crate::store::{Kind, Stored};

/// How long an invitation is valid unless the operator says otherwise, and at most.
pub const DEFAULT_INVITATION_LIFE: Duration = Duration::from_hours(24);
pub const MAX_INVITATION_LIFE: Duration = Duration::from_hours(7 * 24);

/// Who is invited: one enforcer or approver. Keys for any id, and for operators, are not given to whoever has a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", content = "id", rename_all = "camelCase")]
pub enum Invitee {
    Enforcer(EnforcerId),
    Approver(ApproverId),
}

impl From<Invitee> for Role {
    fn from(invitee: Invitee) -> Self {
        match invitee {
            Invitee::Enforcer(id) => Self::Enforcer(Some(id)),
            Invitee::Approver(id) => Self::Approver(Some(id)),
        }
    }
}

/// An invitation as it is stored, by its id. It is deleted when it has expired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    pub invitee: Invitee,
    /// The label of the key that is made with it, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// SHA-256 of the secret part of the invitation.
    pub secret_hash: Sha256Hex,
    pub created_at: Timestamp,
    /// It can be used only before this time.
    pub expires_at: Timestamp,
    /// `None` unless it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl Stored for Invitation {
    const KIND: Kind = Kind::Invitation;
}
