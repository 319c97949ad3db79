//! What the doorbell counts, since the process started.

use std::ops::Deref;

pub use countersign_core::metrics::AnnouncementDrop as Dropped;
use countersign_core::metrics::RingMetrics;

/// The counts of one node, which its metrics show.
#[derive(Debug, Default)]
pub struct Counters(RingMetrics);

impl Deref for Counters {
    type Target = RingMetrics;

    fn deref(&self) -> &RingMetrics {
        &self.0
    }
}

impl Counters {
    pub(crate) fn new(metrics: RingMetrics) -> Self {
        Self(metrics)
    }

    pub(crate) fn drop_for(&self, reason: Dropped) {
        self.0.dropped.at(reason).inc();
    }

    /// Messages that were given to NATS.
    pub fn sent(&self) -> u64 {
        self.0.sent.get()
    }

    /// Messages of other nodes that were taken.
    pub fn received(&self) -> u64 {
        self.0.received.get()
    }

    /// Batches of other nodes that did not arrive, by the gaps in their numbers.
    pub fn lost(&self) -> u64 {
        self.0.lost.get()
    }

    /// Messages that came after a newer one of the same node: out of order, or sent again by somebody.
    pub fn late(&self) -> u64 {
        self.0.out_of_order.get()
    }

    /// How often the connection to NATS was made again.
    pub fn reconnects(&self) -> u64 {
        self.0.reconnects.get()
    }

    /// How often the change poller was asked for an early comparison.
    pub fn comparisons(&self) -> u64 {
        self.0.comparisons.get()
    }

    /// Announcements that wait to be sent now.
    pub fn queue_depth(&self) -> u64 {
        self.0.queued.get().try_into().unwrap_or_default()
    }

    /// What was dropped for this reason.
    pub fn dropped(&self, reason: Dropped) -> u64 {
        self.0.dropped.at(reason).get()
    }
}
