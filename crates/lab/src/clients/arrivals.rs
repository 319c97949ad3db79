//! When each message was sent, and when it first arrived.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::sleep;

use super::messages::{MARK, STAMP_BYTES, read_stamp};
use crate::stopwatch::Stopwatch;

/// One slot per message, by its number.
#[derive(Debug)]
pub(crate) struct Arrivals {
    slots: Box<[Slot]>,
    count: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    sent: AtomicU64,
    /// In nanoseconds; zero until the message arrives.
    arrived: AtomicU64,
}

/// A message that arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) at: Duration,
    pub(crate) latency: Duration,
}

impl Arrivals {
    pub(crate) fn new(max_messages: usize) -> Self {
        Self { slots: (0..max_messages).map(|_| Slot::default()).collect(), count: AtomicU64::new(0) }
    }

    /// How many messages have arrived.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until so many have arrived, or until the time is up.
    pub(crate) async fn wait_for(&self, count: u64, limit: Duration) {
        let watch = Stopwatch::start();
        while self.count() < count && watch.elapsed() < limit {
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// The messages that have arrived, in the order of their numbers.
    pub(crate) fn arrived(&self) -> impl Iterator<Item = Arrived> {
        self.slots.iter().filter_map(|slot| {
            let (sent, arrived) = (slot.sent.load(Ordering::Acquire), slot.arrived.load(Ordering::Acquire));
            (arrived != 0).then(|| Arrived {
                at: Duration::from_nanos(arrived),
                latency: Duration::from_nanos(arrived.saturating_sub(sent)),
            })
        })
    }

    /// Records every complete message in `read`, which arrived at `now`; returns where the incomplete rest begins.
    pub(crate) fn record(&self, read: &[u8], now: Duration) -> usize {
        let mut from = 0;
        while let Some(found) = read[from..].windows(MARK.len()).position(|bytes| bytes == MARK) {
            let start = from + found + MARK.len();
            let Some(stamp) = read.get(start..start + STAMP_BYTES) else { return from + found };
            from = start + STAMP_BYTES;
            if let Some((sent, message)) = read_stamp(stamp) {
                self.record_one(sent, message, now);
            }
        }
        // The mark itself may be incomplete.
        from.max(read.len().saturating_sub(MARK.len() - 1))
    }

    fn record_one(&self, sent: u64, message: u64, now: Duration) {
        let Some(slot) = usize::try_from(message).ok().and_then(|message| self.slots.get(message)) else {
            return;
        };
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        slot.sent.store(sent, Ordering::Release);
        // What comes again has been here.
        if slot.arrived.compare_exchange(0, now, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::messages::stamp;

    #[test]
    fn a_message_that_is_cut_anywhere_is_noted_once() {
        let text = format!("data: {{\"nonce\":\"{}\"}}\n", stamp(Duration::from_nanos(5), 1));
        for cut in 0..text.len() {
            let arrivals = Arrivals::new(2);
            let (now, mut read) = (Duration::from_nanos(12), text.as_bytes()[..cut].to_vec());
            read.drain(..arrivals.record(&read, now));
            read.extend_from_slice(&text.as_bytes()[cut..]);
            read.drain(..arrivals.record(&read, now));
            assert_eq!(arrivals.count(), 1, "cut at {cut}");
            let latencies: Vec<_> = arrivals.arrived().map(|arrived| arrived.latency.as_nanos()).collect();
            assert_eq!(latencies, [7]);
        }
    }
}
