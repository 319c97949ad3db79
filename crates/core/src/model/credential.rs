//! Credentials of a tenant, stored as the hash of their secret.

use std::time::Duration;

use countersign_wire::{
    Label,
    api_key::{ApiKey, KeyId},
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, TenantId},
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::derived_key::DerivedKey;
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
    /// Runs the gateway: its tenants as a whole, and nothing within one, not even its own. Only made on the gateway's machine.
    GatewayOperator,
}

/// A credential as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    pub role: Role,
    /// SHA-256 of the secret part of the key.
    pub secret_hash: Sha256Hex,
    pub created_at: Timestamp,
    /// `None` unless it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// From when on it is invalid; `None` if it does not expire. It can be moved forward, never back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What people call it, if they have named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// What took its place; `None` until its owner has rotated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
    /// The id of the key whose place it took; `None` for the first of its chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_from: Option<String>,
    /// The thumbprint of the certificate that it is, which nobody has a secret of; `None` for a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Sha256Hex>,
}

/// A certificate of a client that some authority vouches for. By what it says its credential is made when it is first used,
/// and can be revoked like a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateSpec {
    pub tenant: TenantId,
    pub role: Role,
    /// SHA-256 of the whole certificate.
    pub thumbprint: Sha256Hex,
    pub expires_at: Timestamp,
}

impl CertificateSpec {
    /// The id of its credential: the first half of the thumbprint, as a ULID is written.
    pub fn key_id(&self) -> KeyId {
        let half = self.thumbprint.as_bytes().first_chunk().copied().unwrap_or_default();
        KeyId::from_ulid_text(&Ulid(u128::from_be_bytes(half)).to_string())
    }

    pub(crate) fn credential(&self, secret_hash: Sha256Hex, now: Timestamp) -> Credential {
        Credential {
            role: self.role.clone(),
            secret_hash,
            created_at: now,
            revoked_at: None,
            expires_at: Some(self.expires_at),
            label: Some(Label::new("certificate")),
            rotation: None,
            rotated_from: None,
            certificate: Some(self.thumbprint),
        }
    }
}

/// How the owner of a key has replaced it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    pub successor: DerivedKey,
    /// When the key that was replaced expires.
    pub previous_expires_at: Timestamp,
    /// When the successor expires, which is when the first key would have; `None` if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// What a credential that is active at some time is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveKey {
    pub role: Role,
    /// How long it is valid from that time on; `None` if it does not expire.
    pub expires_in: Option<Duration>,
}

impl Stored for Credential {
    const KIND: Kind = Kind::Credential;
}

impl Credential {
    /// When it stopped or stops being valid; `None` if it does not.
    pub(crate) fn ends_at(&self) -> Option<Timestamp> {
        [self.revoked_at, self.expires_at].into_iter().flatten().min()
    }

    /// Itself, if the key has its secret. Both are hashes of secrets with 256 random bits: the time of their comparison
    /// tells nothing of use.
    pub(crate) fn opened_by(self, key: &ApiKey) -> Option<Self> {
        (self.secret_hash == key.secret_hash()).then_some(self)
    }

    /// Itself, if it is the credential of this certificate.
    pub(crate) fn of_certificate(self, certificate: &CertificateSpec) -> Option<Self> {
        let is_it = self.certificate == Some(certificate.thumbprint) && self.role == certificate.role;
        is_it.then_some(self)
    }

    pub(crate) fn is_active(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none_or(|at| now < at) && self.expires_at.is_none_or(|at| now < at)
    }

    /// What it is for at `now`; `None` if it is revoked or has expired.
    pub(crate) fn active(self, now: Timestamp) -> Option<ActiveKey> {
        let expires_in = self.expires_at.map(|at| at.since(now));
        self.is_active(now).then_some(ActiveKey { role: self.role, expires_in })
    }
}
