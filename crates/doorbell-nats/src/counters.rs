//! What the doorbell counts, since the process started.

use std::sync::atomic::{AtomicU64, Ordering};

/// Plain counters; whoever shows metrics reads them.
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) sent: Counter,
    pub(crate) received: Counter,
    pub(crate) lost: Counter,
    pub(crate) late: Counter,
    pub(crate) reconnects: Counter,
    pub(crate) comparisons: Counter,
    pub(crate) queued: Counter,
    dropped: [Counter; Dropped::ALL.len()],
}

/// Why something was not sent, or not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Dropped {
    /// Not sent: more waits than the queue takes.
    QueueFull,
    /// Not sent: a delivery over 16 KB, or a name over 2 KB. Whoever needs it reads it.
    TooLarge,
    /// Not sent: NATS is away or does not take it.
    Away,
    /// Not taken: longer than any message may be, shorter than its own lengths say, or not what the format allows.
    Malformed,
    /// Not taken: another version of the format.
    OtherVersion,
    /// Not taken: not sealed with the cluster's secret for this subject.
    Forged,
    /// Not taken: its sender has not proved yet that it runs now. An old message of a node that is gone ends here.
    Unverified,
    /// Not taken: this process was too slow.
    Overrun,
}

impl Dropped {
    pub const ALL: &'static [Self] = &[
        Self::QueueFull,
        Self::TooLarge,
        Self::Away,
        Self::Malformed,
        Self::OtherVersion,
        Self::Forged,
        Self::Unverified,
        Self::Overrun,
    ];

    /// The name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::TooLarge => "too_large",
            Self::Away => "away",
            Self::Malformed => "malformed",
            Self::OtherVersion => "other_version",
            Self::Forged => "forged",
            Self::Unverified => "unverified",
            Self::Overrun => "overrun",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(crate) fn drop_for(&self, reason: Dropped) {
        self.dropped[reason as usize].add(1);
    }

    /// Messages that were given to NATS.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Messages of other nodes that were taken.
    pub fn received(&self) -> u64 {
        self.received.get()
    }

    /// Batches of other nodes that did not arrive, by the gaps in their numbers.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }

    /// Messages that came after a newer one of the same node: out of order, or sent again by somebody.
    pub fn late(&self) -> u64 {
        self.late.get()
    }

    /// How often the connection to NATS was made again.
    pub fn reconnects(&self) -> u64 {
        self.reconnects.get()
    }

    /// How often the change poller was asked for an early comparison.
    pub fn comparisons(&self) -> u64 {
        self.comparisons.get()
    }

    /// Announcements that wait to be sent now.
    pub fn queue_depth(&self) -> u64 {
        self.queued.get()
    }

    /// What was dropped for this reason.
    pub fn dropped(&self, reason: Dropped) -> u64 {
        self.dropped[reason as usize].get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_counter_of_its_own() {
        let counters = Counters::default();
        for (index, reason) in Dropped::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index, "{reason:?}");
            counters.drop_for(*reason);
            assert_eq!(counters.dropped(*reason), 1, "{reason:?}");
        }
        let mut names: Vec<&str> = Dropped::ALL.iter().map(|reason| reason.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Dropped::ALL.len());
    }
}
