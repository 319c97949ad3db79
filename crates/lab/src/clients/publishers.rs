//! Publishers: one thread each, which sends the next message after a response, or at its scheduled time.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use crate::{Failure, stopwatch::Stopwatch};

/// Concurrent connections that publish.
pub(crate) const PUBLISHERS: usize = 8;

/// A publisher that is further behind than this at the end has not sustained the rate, and stops without catching up.
const GRACE: Duration = Duration::from_millis(200);

/// How long and how fast to publish.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// This number of messages at full speed.
    Count(u64),
    /// For this time at full speed, with a maximum number of messages.
    Flat(Duration, u64),
    /// For this time, at this number of messages a second.
    PerSecond(Duration, u64),
}

/// Calls publishers from `make` with the numbers of messages, each number once, in ascending order. Returns the
/// number of published messages.
pub(crate) fn publish<M, P>(pace: Pace, make: M) -> Result<u64, Failure>
where
    M: Fn() -> Result<P, Failure> + Sync,
    P: FnMut(u64) -> Result<(), Failure>,
{
    let (next, sent) = (AtomicU64::new(0), AtomicU64::new(0));
    let watch = Stopwatch::start();
    let run = || -> Result<(), Failure> {
        let mut publisher = make()?;
        loop {
            let message = next.fetch_add(1, Ordering::Relaxed);
            if !is_due(pace, message, watch) {
                return Ok(());
            }
            publisher(message)?;
            sent.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..PUBLISHERS).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a publisher panicked")?)
    })?;
    Ok(sent.into_inner())
}

/// Waits for the scheduled time of this message; returns whether to send it.
fn is_due(pace: Pace, message: u64, watch: Stopwatch) -> bool {
    match pace {
        Pace::Count(count) => message < count,
        Pace::Flat(length, max_messages) => message < max_messages && watch.elapsed() < length,
        Pace::PerSecond(length, rate) => {
            let due = Duration::from_nanos(message.saturating_mul(1_000_000_000) / rate.max(1));
            while let Some(early) = due.checked_sub(watch.elapsed()).filter(|early| !early.is_zero()) {
                if due >= length {
                    return false;
                }
                thread::park_timeout(early);
            }
            due < length && watch.elapsed() < length + GRACE
        }
    }
}
