//! New requests, and what is tried again, each within its limits: neither takes the store from the other.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// New requests. Those that are worked on mostly wait for services; a burst of them leaves the store to others.
pub(super) const FRESH: Limits = Limits { at_once: 1_024, reads: 8, writes: 64 };

/// What is tried again. Whatever fails, and however often, new requests have the store nearly for themselves.
pub(super) const RETRIES: Limits = Limits { at_once: 256, reads: 1, writes: 1 };

/// How much is done at once.
pub(super) struct Limits {
    /// Notices that are worked on.
    at_once: usize,
    /// Reads of whom to notify.
    reads: usize,
    /// Commits of what became of it.
    writes: usize,
}

/// What keeps to its limits.
#[derive(Debug)]
pub(super) struct Limiter {
    pub(super) at_once: Arc<Semaphore>,
    pub(super) reads: Semaphore,
    pub(super) writes: Semaphore,
}

impl From<Limits> for Limiter {
    fn from(Limits { at_once, reads, writes }: Limits) -> Self {
        let at_once = Arc::new(Semaphore::new(at_once));
        Self { at_once, reads: Semaphore::new(reads), writes: Semaphore::new(writes) }
    }
}
