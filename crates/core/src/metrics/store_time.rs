//! The store's time, as far as it is known without a call. For measuring only: nothing is decided by it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use countersign_wire::timestamp::Timestamp;
use tokio::time::Instant;

/// No answer has come yet.
const UNKNOWN: i64 = i64::MIN;

/// An answer that was this much later than others says something of the answer and not of the clock.
const MAX_DELAY_MICROS: i64 = 1_000_000;

/// The time of the store's last answers, plus the time since. Clones share it.
#[derive(Debug, Clone)]
pub struct StoreTime {
    began: Instant,
    /// The store's time minus the time since `began`, in microseconds.
    offset: Arc<AtomicI64>,
}

impl Default for StoreTime {
    fn default() -> Self {
        Self { began: Instant::now(), offset: Arc::new(AtomicI64::new(UNKNOWN)) }
    }
}

impl StoreTime {
    /// Takes over the time of an answer. An answer is always late, so the largest offset is the closest; a store whose
    /// clock was put back shows by much smaller ones.
    pub fn answered(&self, now: Timestamp) {
        let offset = now.unix_micros().saturating_sub(self.elapsed());
        let known = self.offset.load(Ordering::Relaxed);
        if offset > known || known - offset > MAX_DELAY_MICROS {
            self.offset.store(offset, Ordering::Relaxed);
        }
    }

    /// `None` before the first answer.
    pub fn now(&self) -> Option<Timestamp> {
        match self.offset.load(Ordering::Relaxed) {
            UNKNOWN => None,
            offset => Some(Timestamp::from_unix_micros(offset.saturating_add(self.elapsed()))),
        }
    }

    /// How long ago something was committed; `None` before the first answer.
    pub fn since(&self, committed: Timestamp) -> Option<Duration> {
        Some(self.now()?.since(committed))
    }

    fn elapsed(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_unix_micros(1_000_000_000_000 + millis * 1_000)
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_does_not_put_the_time_back_and_a_changed_clock_does() {
        let time = StoreTime::default();
        assert_eq!(time.now(), None);
        time.answered(at(0));
        advance(Duration::from_millis(300)).await;
        assert_eq!(time.now(), Some(at(300)));
        assert_eq!(time.since(at(100)), Some(Duration::from_millis(200)));
        // This answer was on its way for 250 ms.
        time.answered(at(50));
        assert_eq!(time.now(), Some(at(300)));
        // This one is ahead: the first was late.
        time.answered(at(310));
        assert_eq!(time.now(), Some(at(310)));
        time.answered(at(-5_000));
        assert_eq!(time.now(), Some(at(-5_000)));
    }
}
