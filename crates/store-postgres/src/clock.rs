//! The server's time, as far as it is known without asking.

use std::time::Duration;

use countersign_wire::timestamp::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The last time that the server reported, and when.
#[derive(Debug)]
pub(crate) struct Clock {
    last: Mutex<Option<(Timestamp, Instant)>>,
    max_age: Duration,
}

impl Clock {
    /// What was reported longer ago than `max_age` is not used.
    pub(crate) fn new(max_age: Duration) -> Self {
        Self { last: Mutex::default(), max_age }
    }

    /// A report that comes late, after a commit that had to wait, does not set the clock back. If the server's clock was
    /// set back, the reports before it count until they are too old.
    pub(crate) fn reported(&self, now: Timestamp) {
        if self.estimate().is_none_or(|estimate| estimate < now) {
            *self.last.lock() = Some((now, Instant::now()));
        }
    }

    /// The last time and what has passed since. It is late by the way of the report, rather than early.
    pub(crate) fn estimate(&self) -> Option<Timestamp> {
        let (reported, at) = (*self.last.lock())?;
        let passed = at.elapsed();
        (passed < self.max_age).then(|| reported.plus(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_passes_between_reports_and_an_old_report_counts_for_nothing() {
        let clock = Clock::new(Duration::from_secs(10));
        assert_eq!(clock.estimate(), None);
        let start = Timestamp::from_unix_micros(1_000_000);
        clock.reported(start);
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(clock.estimate(), Some(start.plus(Duration::from_secs(9))));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(clock.estimate(), None);
        // The server's clock was set back.
        clock.reported(start);
        assert_eq!(clock.estimate(), Some(start));
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_report_does_not_set_the_clock_back() {
        let clock = Clock::new(Duration::from_secs(10));
        let start = Timestamp::from_unix_micros(1_000_000);
        clock.reported(start);
        tokio::time::advance(Duration::from_secs(3)).await;
        clock.reported(start.plus(Duration::from_secs(1)));
        assert_eq!(clock.estimate(), Some(start.plus(Duration::from_secs(3))));
    }
}
