//! Graceful shutdown: it is announced to load balancers, and then the drain begins that every held connection listens to.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::sleep};

/// How long connections get to end by themselves once the drain has begun.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the gateway is shutting down. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Drain(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// How long it is announced before it begins.
    notice: Duration,
    is_announced: AtomicBool,
    has_begun: AtomicBool,
    begun: Notify,
}

impl Drain {
    pub fn after(notice: Duration) -> Self {
        Self(Arc::new(Shared { notice, ..Shared::default() }))
    }

    /// Says that this node will stop, and returns when those who ask have had the time to hear of it.
    pub async fn announce(&self) {
        self.0.is_announced.store(true, Ordering::SeqCst);
        sleep(self.0.notice).await;
    }

    /// Whether others should send their requests to another node.
    pub fn is_announced(&self) -> bool {
        self.0.is_announced.load(Ordering::SeqCst) || self.has_begun()
    }

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
