//! What can be configured when the store is opened.

use std::time::Duration;

use countersign_core::metrics::WriterMetrics;

use crate::clock::Clock;

/// [`Options::default`] is for production.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether changes that are queued at the same time share a transaction, and so one sync of the disk. Off only for
    /// measurements.
    pub batching: bool,
    /// Changes that may be queued; one more is rejected as overload. A single tenant gets at most half.
    pub queued_changes: usize,
    /// Bytes of content that may be queued. A single tenant gets at most half, but one change may always be queued.
    pub queued_bytes: u32,
    /// Connections for reading, and so concurrent reads.
    pub readers: usize,
    /// How long to wait for another process that writes to the same file.
    pub busy_timeout: Duration,
    pub clock: Clock,
    /// Where the writer counts what it does.
    pub metrics: WriterMetrics,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            batching: true,
            queued_changes: 4_096,
            queued_bytes: 128 * 1_024 * 1_024,
            readers: 4,
            busy_timeout: Duration::from_secs(5),
            clock: Clock::system(),
            metrics: WriterMetrics::default(),
        }
    }
}
