//! Names of records and payloads.

use std::fmt;

use serde::{Deserialize, Serialize};

// CONTRIBUTING: add a record kind, step 1
/// What a record is. The number is stored and never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(i16)]
pub enum Kind {
    /// An exchange, by its request id.
    Exchange = 1,
    /// A prompt, by its request id.
    Prompt = 2,
    /// An agent's session, by its session id.
    Session = 3,
    /// One event of a session, by session and digest, so that it is recorded once.
    SessionEvent = 4,
    /// A pairing, by its nonce.
    Pairing = 5,
    /// A pairing code, by its keyed hash.
    PairingCode = 6,
    /// The approvers that an enforcer is paired with, by the enforcer's id.
    Enforcer = 7,
    /// An approver's keys and pairings, by its id.
    Approver = 8,
    /// The approver behind a routing token, by the token.
    Route = 9,
    /// An `Idempotency-Key`, by principal, path and key.
    Idempotency = 10,
    /// When an enforcer was last seen, by its id.
    Presence = 11,
    /// A credential, by its key id.
    Credential = 12,
    /// The tenant's one policy.
    Policy = 13,
    /// Failed attempts at pairing codes, by principal.
    FailedCodeAttempts = 14,
    /// The open channels of an enforcer, by its id.
    Channels = 15,
    /// Until when a node counts as alive, by its id.
    Lease = 16,
    /// A ticket, by its hash.
    Ticket = 17,
    /// The pairs of an enforcer and an approver, by both ids.
    Pairs = 18,
    /// The check values of the secrets that all nodes share.
    SecretChecks = 19,
    /// An invitation, by its id.
    Invitation = 20,
    /// Whether the tenant is suspended or being erased. A tenant has one such record, or none.
    Tenant = 21,
    /// What the gateway keeps for itself, encrypted by its nodes, by its name.
    Own = 22,
    /// How a person is notified of requests, by the approver's id.
    Notifications = 23,
}

impl Kind {
    pub const ALL: &'static [Self] = &[
        Self::Exchange,
        Self::Prompt,
        Self::Session,
        Self::SessionEvent,
        Self::Pairing,
        Self::PairingCode,
        Self::Enforcer,
        Self::Approver,
        Self::Route,
        Self::Idempotency,
        Self::Presence,
        Self::Credential,
        Self::Policy,
        Self::FailedCodeAttempts,
        Self::Channels,
        Self::Lease,
        Self::Ticket,
        Self::Pairs,
        Self::SecretChecks,
        Self::Invitation,
        Self::Tenant,
        Self::Own,
        Self::Notifications,
    ];

    /// Whether a record of this kind is read to find out who a client is. A store answers such a read however many others
    /// it has to answer.
    pub fn authenticates(self) -> bool {
        matches!(self, Self::Credential | Self::Ticket | Self::Tenant)
    }

    /// The number as it is stored.
    pub fn number(self) -> i16 {
        self as i16
    }

    /// The kind behind a stored number.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.number() == number)
    }
}

/// The name of a record within its tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub kind: Kind,
    /// Unique within tenant and kind; never empty.
    pub id: String,
}

impl Key {
    pub fn new(kind: Kind, id: impl fmt::Display) -> Self {
        Self { kind, id: id.to_string() }
    }
}

/// The name of a payload. Unique over all tenants, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PayloadId(pub u128);

impl From<PayloadId> for String {
    fn from(id: PayloadId) -> Self {
        format!("{:032x}", id.0)
    }
}

impl TryFrom<String> for PayloadId {
    type Error = std::num::ParseIntError;

    fn try_from(hex: String) -> Result<Self, Self::Error> {
        u128::from_str_radix(&hex, 16).map(Self)
    }
}
