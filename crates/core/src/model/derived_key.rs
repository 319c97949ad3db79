//! A key that is derived from something secret and a nonce, so that a repeated request can be given the same key although
//! it is stored nowhere.

use std::time::Duration;

use countersign_wire::{api_key::ApiKey, hash::Sha256Hex, timestamp::Timestamp};
use serde::{Deserialize, Serialize};

/// For how long a repeated request gets the same key.
pub const REPEATABLE: Duration = Duration::from_mins(1);

/// What is kept of such a key in the record of what it was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DerivedKey {
    pub key_id: String,
    /// SHA-256 of the secret part of the key. Who sends the same nonce arrives at the same.
    pub secret_hash: Sha256Hex,
    pub at: Timestamp,
}

impl DerivedKey {
    pub(crate) fn new(key: &ApiKey, now: Timestamp) -> Self {
        Self { key_id: key.key_id().to_string(), secret_hash: key.secret_hash(), at: now }
    }

    /// Whether the request for it can still be repeated.
    pub(crate) fn is_repeatable(&self, now: Timestamp) -> bool {
        now < self.at.plus(REPEATABLE)
    }

    /// Whether `key`, which was derived again, is the one that was made.
    pub(crate) fn is(&self, key: &ApiKey) -> bool {
        self.secret_hash == key.secret_hash() && self.key_id == key.key_id().as_str()
    }
}
