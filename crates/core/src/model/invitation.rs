//! Invitations: what an operator gives somebody so that they can make an API key of their own.

use std::time::Duration;

use countersign_wire::{
    Label,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{
    credential::Role,
    derived_key::{DerivedKey, REPEATABLE},
};
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

impl Invitee {
    /// The role of the key that is made with the invitation.
    pub(crate) fn role(&self) -> Role {
        match self {
            Self::Enforcer(id) => Role::Enforcer(Some(id.clone())),
            Self::Approver(id) => Role::Approver(Some(id.clone())),
        }
    }
}

/// An invitation as it is stored, by its id. It is deleted a minute after it has expired.
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
    /// `None` unless it was revoked, before or after it was used.
    pub revoked_at: Option<Timestamp>,
    /// The key that was made with it; `None` if there is none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<DerivedKey>,
}

/// What an invitation is good for at some time.
pub(crate) enum Usability<'a> {
    /// Somebody can join.
    Open,
    /// Somebody has joined, and may ask again.
    JustUsed(&'a DerivedKey),
    /// Nothing, from now on.
    Invalid,
}

impl Invitation {
    pub(crate) fn usability(&self, now: Timestamp) -> Usability<'_> {
        match &self.used {
            _ if self.revoked_at.is_some() => Usability::Invalid,
            // Also if it expires meanwhile: whoever was in time must get their key.
            Some(used) if used.is_repeatable(now) => Usability::JustUsed(used),
            None if now < self.expires_at => Usability::Open,
            Some(_) | None => Usability::Invalid,
        }
    }

    /// Until when it is kept: whoever joins in the last moment can still ask again.
    pub(crate) fn kept_until(&self) -> Timestamp {
        self.expires_at.plus(REPEATABLE)
    }
}

impl Stored for Invitation {
    const KIND: Kind = Kind::Invitation;
}
