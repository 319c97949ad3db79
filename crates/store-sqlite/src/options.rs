//! What can be chosen when a store is opened.

use std::time::Duration;

use crate::clock::Clock;

/// How a store works. [`Options::default`] is for production.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether changes that wait at the same time share a transaction, and so one sync of the disk.
    pub batching: bool,
    /// How many changes may wait for the writer. One more is refused as overload.
    pub queued_changes: usize,
    /// How many bytes of content may wait for the writer. One change alone may always wait.
    pub queued_bytes: u32,
    /// How many reads may go on at once.
    pub readers: usize,
    /// How long to wait for another process that writes to the same file.
    pub busy_timeout: Duration,
    /// Where the time is from.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            batching: true,
            queued_changes: 1_024,
            queued_bytes: 64 * 1_024 * 1_024,
            readers: 4,
            busy_timeout: Duration::from_secs(5),
            clock: Clock::system(),
        }
    }
}
