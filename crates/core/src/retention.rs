//! How long things are kept.

use std::time::Duration;

use countersign_wire::timestamp::Timestamp;

use crate::model::{credential::Credential, session::Session};

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Everything of an exchange, after its end; prompts likewise.
    pub after_end: Duration,
    /// What an agent's session said, after its last event.
    pub session: Duration,
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

    /// How long a session is kept after its last event. A receipt travels as a session without a start, and stays as long as its
    /// exchange does.
    pub(crate) fn of_session(&self, session: &Session) -> Duration {
        if session.is_of_an_agent() { self.session } else { self.after_end }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            after_end: 30 * DAY,
            session: 7 * DAY,
            tombstone: 90 * DAY,
            idempotency: DAY,
            orphan: DAY / 24,
            presence: 30 * DAY,
            ended_keys: 90 * DAY,
            audit: 400 * DAY,
        }
    }
}
