//! What this node remembers, so that nothing is read twice: known records, deliveries that were handed over, who
//! listens. All of it may be dropped at any time.

mod hand_overs;
mod known;
mod skips;

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

pub(crate) use hand_overs::HandOvers;
pub use hand_overs::HandedOver;
pub(crate) use known::{Known, KnownRecords, is_kept, is_slow};
pub(crate) use skips::Skips;

use crate::{
    metrics::Metrics,
    notify::{Announcement, Listeners, Receiver, Ring},
    store::Shard,
};

/// Where nothing is committed that would guard it, a known record is at most this old.
pub(crate) const MAX_KNOWN_AGE: Duration = Duration::from_secs(5);

/// A node whose lease was renewed longer ago reads whose turn it is: others may soon count it as dead.
const MAX_RENEWAL_AGE: Duration = Duration::from_secs(10);

/// What is read only to hand over better next time is read this far apart at least.
const LEARN_INTERVAL: Duration = Duration::from_millis(10);

/// What one node remembers.
#[derive(Debug, Default)]
pub(crate) struct NodeCache {
    pub(crate) listeners: Listeners,
    pub(crate) known: KnownRecords,
    pub(crate) hand_overs: HandOvers,
    pub(crate) skips: Skips,
    /// The history of the store that all of it is from.
    timeline: AtomicU64,
    /// When the lease of this node was last renewed, by shard.
    renewed: Mutex<HashMap<Shard, Instant>>,
    /// When something was last read only to hand over better next time.
    learned: Mutex<Option<Instant>>,
}

impl NodeCache {
    pub(crate) fn new(timeline: u64, metrics: &Metrics) -> Self {
        Self {
            known: KnownRecords::new(metrics.known_records.clone()),
            hand_overs: HandOvers::new(metrics.hand_overs.clone()),
            timeline: AtomicU64::new(timeline),
            ..Self::default()
        }
    }

    pub(crate) fn timeline(&self) -> u64 {
        self.timeline.load(Ordering::Acquire)
    }

    /// Forgets everything if the store's history is another one, and wakes everybody to read again. Returns whether it
    /// was.
    pub(crate) fn follow(&self, timeline: u64) -> bool {
        if self.timeline.swap(timeline, Ordering::AcqRel) == timeline {
            return false;
        }
        self.known.clear();
        self.hand_overs.clear();
        self.skips.clear();
        self.listeners.wake_all();
        true
    }

    /// Whether it is time to read something only to hand over better next time.
    pub(crate) fn may_learn(&self) -> bool {
        let mut learned = self.learned.lock();
        let may_learn = learned.is_none_or(|learned| learned.elapsed() >= LEARN_INTERVAL);
        if may_learn {
            *learned = Some(Instant::now());
        }
        may_learn
    }

    pub(crate) fn lease_renewed(&self, shard: Shard) {
        self.renewed.lock().insert(shard, Instant::now());
    }

    /// Whether other nodes certainly count this one as alive, for the tenants of this shard.
    pub(crate) fn is_lease_recent(&self, shard: Shard) -> bool {
        let renewed = self.renewed.lock();
        renewed.get(&shard).is_some_and(|renewed| renewed.elapsed() <= MAX_RENEWAL_AGE)
    }
}

impl Receiver for NodeCache {
    fn receive(&self, announcement: Announcement) {
        let Announcement { timeline, mut rings, hand_overs } = announcement;
        for (ring, version) in &rings {
            if let Ring::Record(tenant, key) = ring {
                self.known.changed(tenant, key, *version);
            }
        }
        for (_, hand_over) in hand_overs {
            let ring = Ring::Mailbox(hand_over.mailbox.clone());
            if timeline == self.timeline() && self.listeners.has(&ring) {
                let number = hand_over.delivery.number;
                self.hand_overs.insert(hand_over);
                rings.push((ring, number));
            } else {
                self.hand_overs.not_wanted();
            }
        }
        self.listeners.wake_once(&rings);
    }
}
