//! Graceful shutdown: the drain that every held connection listens to.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

/// How long connections get to end by themselves once the drain has begun.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the gateway is shutting down. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Drain(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    has_begun: AtomicBool,
    begun: Notify,
}

impl Drain {
    /// Asks every connection to end.
    pub fn begin(&self) {
        self.0.has_begun.store(true, Ordering::SeqCst);
        self.0.begun.notify_waiters();
    }

    pub fn has_begun(&self) -> bool {
        self.0.has_begun.load(Ordering::SeqCst)
    }

    /// Returns when the drain begins. Each held connection has one of these, so it is small.
    pub async fn begun(&self) {
        // Before the look: from here on it hears of a beginning, polled or not.
        let begun = self.0.begun.notified();
        if !self.has_begun() {
            begun.await;
        }
    }
}
