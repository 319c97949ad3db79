//! Graceful shutdown: the drain that every held connection listens to.

use std::time::Duration;

use tokio::sync::watch;

/// How long connections get to end by themselves once the drain has begun.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the gateway is shutting down. Clones share it.
#[derive(Debug, Clone)]
pub struct Drain(watch::Sender<bool>);

impl Default for Drain {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Drain {
    /// Asks every connection to end.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the drain begins.
    pub async fn begun(&self) {
        // The sender lives as long as `self`.
        drop(self.0.subscribe().wait_for(|begun| *begun).await);
    }
}
