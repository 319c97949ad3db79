//! Asks the change poller for a comparison before its time, because something was lost.

use std::{sync::Arc, time::Duration};

use tokio::{runtime::Handle, sync::Notify, task::AbortHandle, time::sleep};

use crate::counters::Counters;

/// However much gets lost, comparisons are at least this far apart.
const INTERVAL: Duration = Duration::from_secs(1);

/// Passes on what is asked for, at most once in [`INTERVAL`], and nothing gets lost: what is asked for meanwhile is
/// passed on when it has passed. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Comparison {
    asked: Notify,
    wanted: Arc<Notify>,
}

impl Comparison {
    pub(crate) fn start(runtime: &Handle, counters: Arc<Counters>) -> (Arc<Self>, Pacer) {
        let comparison = Arc::new(Self { asked: Notify::new(), wanted: Arc::default() });
        let of_task = Arc::clone(&comparison);
        let task = runtime.spawn(async move {
            loop {
                of_task.asked.notified().await;
                counters.comparisons.inc_by(1);
                of_task.wanted.notify_one();
                sleep(INTERVAL).await;
            }
        });
        (comparison, Pacer(task.abort_handle()))
    }

    pub(crate) fn ask(&self) {
        self.asked.notify_one();
    }

    /// Notified when a comparison is due.
    pub(crate) fn wanted(&self) -> &Arc<Notify> {
        &self.wanted
    }
}

/// Ends the task when it is dropped.
#[derive(Debug)]
pub(crate) struct Pacer(AbortHandle);

impl Drop for Pacer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, advance, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_thousand_losses_ask_once_a_second_and_the_last_is_not_forgotten() {
        let counters = Arc::new(Counters::default());
        let (comparison, _pacer) = Comparison::start(&Handle::current(), Arc::clone(&counters));
        let start = Instant::now();
        for _ in 0..10_000 {
            comparison.ask();
            advance(Duration::from_micros(300)).await;
            tokio::task::yield_now().await;
        }
        assert!((3..=4).contains(&counters.comparisons()), "{} in 3 s", counters.comparisons());
        comparison.wanted().notified().await;
        // The last ask came less than a second after a comparison, and is passed on when the second is over.
        timeout(Duration::from_secs(2), comparison.wanted().notified()).await.unwrap();
        assert!(start.elapsed() >= Duration::from_secs(3));
        let again = timeout(Duration::from_mins(1), comparison.wanted().notified()).await;
        assert!(again.is_err(), "nothing was asked for since");
    }
}
