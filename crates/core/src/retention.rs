//! How long things are kept.

use std::time::Duration;

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
    /// A row of the audit log.
    pub audit: Duration,
}

const DAY: Duration = Duration::from_hours(24);

impl Default for Retention {
    fn default() -> Self {
        Self {
            after_end: 30 * DAY,
            tombstone: 90 * DAY,
            idempotency: DAY,
            orphan: DAY / 24,
            presence: 30 * DAY,
            audit: 400 * DAY,
        }
    }
}
