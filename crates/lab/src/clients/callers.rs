//! Callers of one thread: a fixed number of them, each of which calls again as soon as it is done, or at a given rate.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use tokio::{
    task::{JoinHandle, LocalSet},
    time::{Instant, sleep_until},
};

use crate::{Failure, rounds::Completed, stopwatch::Stopwatch};

/// Keeps `in_flight` callers from `make` busy for `length`. What is completed later does not count.
pub(crate) fn keep_in_flight<M, C>(in_flight: u64, length: Duration, make: M) -> Result<Completed, Failure>
where
    M: AsyncFn(u64) -> Result<C, Failure>,
    C: AsyncFnMut() -> Result<(), Failure> + 'static,
{
    run(in_flight, length, None, make)
}

/// Calls `rate` times a second for `length`, with as many callers. A call that no caller was free for begins late, and its
/// latency counts from the time at which it was due.
pub(crate) fn keep_pace<M, C>(
    callers: u64,
    rate: u64,
    length: Duration,
    make: M,
) -> Result<Completed, Failure>
where
    M: AsyncFn(u64) -> Result<C, Failure>,
    C: AsyncFnMut() -> Result<(), Failure> + 'static,
{
    run(callers, length, Some(rate.max(1)), make)
}

fn run<M, C>(callers: u64, length: Duration, rate: Option<u64>, make: M) -> Result<Completed, Failure>
where
    M: AsyncFn(u64) -> Result<C, Failure>,
    C: AsyncFnMut() -> Result<(), Failure> + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    let latencies = tasks.block_on(&runtime, async {
        let mut ready = Vec::new();
        for number in 0..callers {
            ready.push(make(number).await?);
        }
        let schedule =
            Schedule { watch: Stopwatch::start(), began: Instant::now(), length, rate, next: Rc::default() };
        let latencies = Rc::new(RefCell::new(Vec::new()));
        let running: Vec<JoinHandle<Result<(), Failure>>> = ready
            .into_iter()
            .map(|caller| tokio::task::spawn_local(call(caller, schedule.clone(), Rc::clone(&latencies))))
            .collect();
        for caller in running {
            caller.await??;
        }
        Ok::<_, Failure>(latencies.take())
    })?;
    Ok(Completed::timed(latencies, length))
}

async fn call(
    mut caller: impl AsyncFnMut() -> Result<(), Failure>,
    schedule: Schedule,
    latencies: Rc<RefCell<Vec<Duration>>>,
) -> Result<(), Failure> {
    while let Some(started) = schedule.next_start().await {
        caller().await?;
        let ended = schedule.watch.elapsed();
        if ended <= schedule.length {
            latencies.borrow_mut().push(ended.saturating_sub(started));
        }
    }
    Ok(())
}

/// When calls begin and when they end.
#[derive(Clone)]
struct Schedule {
    watch: Stopwatch,
    /// The same moment on the runtime's clock.
    began: Instant,
    length: Duration,
    /// Calls a second; without one, each begins at once.
    rate: Option<u64>,
    next: Rc<Cell<u64>>,
}

impl Schedule {
    /// Waits until the next call is due; returns when it began, or `None` after the end of the stretch.
    async fn next_start(&self) -> Option<Duration> {
        let now = self.watch.elapsed();
        let Some(rate) = self.rate else { return (now < self.length).then_some(now) };
        let due =
            Duration::from_nanos(self.next.replace(self.next.get() + 1).saturating_mul(1_000_000_000) / rate);
        if due >= self.length {
            return None;
        }
        if due <= now {
            return (now < self.length).then_some(due);
        }
        sleep_until(self.began + due).await;
        Some(self.watch.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_nobody_was_free_for_counts_from_when_it_was_due() {
        let make = async |_| {
            Ok(async || {
                tokio::time::sleep(Duration::from_millis(60)).await;
                Ok(())
            })
        };
        // Calls that end after this time don't count, so it is long: a machine that stands still for a moment would leave none.
        let done = keep_pace(1, 100, Duration::from_secs(2), make).unwrap();
        let slowest = done.latencies.iter().max().unwrap();
        assert!(*slowest > Duration::from_millis(130), "the third was due after 20 ms: {:?}", done.latencies);
    }
}
