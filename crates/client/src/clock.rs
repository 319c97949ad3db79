//! The time: the only place that reads the system's clock. Everything else gets it as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

use countersign_wire::timestamp::Timestamp;

/// Where the time comes from; a test has its own.
pub trait Clock: Send + Sync + 'static {
    /// The time in UTC, which may jump.
    fn now(&self) -> Timestamp;
}

/// The system's clock. Ends allow for a minute of difference between their clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the only place")]
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}
