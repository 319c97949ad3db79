//! How long things are kept.

use std::time::Duration;

use countersign_wire::timestamp::Timestamp;

use crate::model::credential::Credential;

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Everything of an exchange, after its end; prompts and sessions likewise.
    pub after_end: Duration,
    /// The tombstone, which keeps a request id taken, after the end.
    pub tombstone: Duration,
    /// What an `Idempotency-Key` was used for.
    pub idempotency: Duration,
    /// A large body whose commit never came.
    pub orphan: Duration,
    /// The presence of an enforcer that is offline, after it was last seen.
    pub presence: Duration,
    /// A key, after it was revoked or has expired.
    pub ended_keys: Duration,
    /// A row of the audit log.
    pub audit: Duration,
}

const DAY: Duration = Duration::from_hours(24);

impl Retention {
    /// Until when a key is kept; `None` while it has no end.
    pub(crate) fn of_key(&self, key: &Credential) -> Option<Timestamp> {
        // One of a certificate outlives it: without it a revoked certificate would be like new.
        let end = if key.certificate.is_some() { key.expires_at } else { key.ends_at() };
        end.map(|end| end.plus(self.ended_keys))
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            after_end: 30 * DAY,
            tombstone: 90 * DAY,
            idempotency: DAY,
            orphan: DAY / 24,
            presence: 30 * DAY,
            ended_keys: 90 * DAY,
            audit: 400 * DAY,
        }
    }
}
