//! What an `Idempotency-Key` was used for.

use countersign_wire::{hash::Sha256Hex, id::RequestId, timestamp::Timestamp};
use serde::{Deserialize, Serialize};

use crate::store::{Key, Kind, Stored};

/// What a key was used for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyRecord {
    pub request_id: RequestId,
    /// The artifact's or prompt's hash, or the decision's digest.
    pub hash: Sha256Hex,
    /// The key can be used for something else from this time on.
    pub until: Timestamp,
}

impl Stored for IdempotencyRecord {
    const KIND: Kind = Kind::Idempotency;
}

/// An `Idempotency-Key` of one principal on one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(Key);

impl IdempotencyKey {
    /// `scope` names the principal and the path. Keys are as long as clients like; their hash is not.
    pub fn new(scope: &str, key: &str) -> Self {
        Self(IdempotencyRecord::key(Sha256Hex::digest(format!("{scope}\n{key}").as_bytes())))
    }

    pub(crate) fn record_key(&self) -> Key {
        self.0.clone()
    }
}
