//! Names of records and payloads.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a record is. The number is what stores keep; it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(i16)]
pub enum Kind {
    /// An exchange, by its request id.
    Exchange = 1,
    /// A prompt, by its request id.
    Prompt = 2,
    /// A session of an agent, by its session id.
    Session = 3,
    /// One event of a session, by session and digest: so that it is taken once.
    SessionEvent = 4,
    /// A pairing, by its nonce.
    Pairing = 5,
    /// A pairing code, by its keyed hash.
    PairingCode = 6,
    /// What an enforcer is paired with, by its id.
    Enforcer = 7,
    /// An approver's keys and pairings, by its id.
    Approver = 8,
    /// Where a routing token leads, by the token.
    Route = 9,
    /// An `Idempotency-Key`, by principal, path and key.
    Idempotency = 10,
    /// When an enforcer was last heard of, by its id.
    Presence = 11,
    /// A credential, by its key id.
    Credential = 12,
    /// A tenant's policy.
    Policy = 13,
    /// Wrong pairing codes of one principal.
    WrongCodes = 14,
    /// The open channels of an enforcer, by its id.
    Channels = 15,
    /// Until when a node is alive, by its id.
    Lease = 16,
    /// A ticket, by its hash.
    Ticket = 17,
}

impl Kind {
    /// Every kind.
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
        Self::WrongCodes,
        Self::Channels,
        Self::Lease,
        Self::Ticket,
    ];

    /// The number that stores keep.
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
    /// What it is.
    pub kind: Kind,
    /// Which one; never empty.
    pub id: String,
}

impl Key {
    /// The record of this kind and id.
    pub fn new(kind: Kind, id: impl fmt::Display) -> Self {
        Self { kind, id: id.to_string() }
    }
}

/// The name of a payload. Unique over all tenants and never used again.
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
