//! What a store has said about a change.

/// A change that the store has acknowledged as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// The id of the change, see [`first_id`](super::first_id).
    pub id: u64,
    /// The number that the store returned for its only delivery.
    pub number: u64,
    /// The version that the store returned for its only record.
    pub version: u64,
}

/// The result that the store returned for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitReport {
    /// The store acknowledged the change as durable.
    Acked(Acked),
    /// The outcome is unknown: either all of the change is there, or nothing.
    Unknown(u64),
    /// The store rejected the change without writing anything.
    Refused(u64),
}

impl CommitReport {
    pub(super) fn id(&self) -> u64 {
        match self {
            Self::Acked(acked) => acked.id,
            Self::Unknown(id) | Self::Refused(id) => *id,
        }
    }
}
