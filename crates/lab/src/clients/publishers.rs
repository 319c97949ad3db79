//! Publishers: a thread each, which calls again as soon as it is answered, or when its time has come.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use crate::{Failure, stopwatch::Stopwatch};

/// Connections that publish at once.
pub(crate) const PUBLISHERS: usize = 8;

/// Who is this far behind at the end has not held the rate, and need not catch up.
const GRACE: Duration = Duration::from_millis(200);

/// For how long, and how fast.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// So many in all, as fast as they are answered.
    Count(u64),
    /// For so long, as fast as they are answered, but not more than so many.
    Flat(Duration, u64),
    /// For so long, so many a second.
    PerSecond(Duration, u64),
}

/// Calls the publishers that `make` makes with the numbers of messages, each number once, in order. Says how
/// many were published.
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

/// Waits for the time of this message; says whether there is one.
fn is_due(pace: Pace, message: u64, watch: Stopwatch) -> bool {
    match pace {
        Pace::Count(count) => message < count,
        Pace::Flat(length, most) => message < most && watch.elapsed() < length,
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
