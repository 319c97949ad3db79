//! One stretch of commits: `in_flight` concurrent callers, each with one change at a time.

use std::{sync::Arc, time::Duration};

use countersign_core::store::{Outcome, Store};
use tokio::task::JoinSet;

use crate::{
    Failure,
    rounds::Completed,
    stopwatch::Stopwatch,
    workload::{Requests, Workload},
};

/// When a stretch ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// After this time. Commits that finish later do not count.
    Elapsed(Duration),
    /// When this many requests are undecided.
    Undecided(u64),
}

/// A commit that finished at `at`.
struct Finished {
    at: Duration,
    latency: Duration,
}

/// Keeps `in_flight` commits running until the stretch ends, which is early if there is nothing left to decide.
pub(crate) async fn stretch(
    store: &Arc<dyn Store>,
    requests: &Arc<Requests>,
    workload: Workload,
    in_flight: u64,
    until: Until,
) -> Result<Completed, Failure> {
    let watch = Stopwatch::start();
    let mut callers = JoinSet::new();
    for _ in 0..in_flight {
        callers.spawn(call(Arc::clone(store), Arc::clone(requests), workload, until, watch));
    }
    let mut finished = Vec::new();
    let mut elapsed = Duration::MAX;
    while let Some(caller) = callers.join_next().await {
        let (commits, ended) = caller??;
        finished.extend(commits);
        elapsed = elapsed.min(ended);
    }
    let in_time = finished.into_iter().filter(|commit: &Finished| commit.at <= elapsed);
    Ok(Completed::timed(in_time.map(|commit| commit.latency).collect(), elapsed))
}

/// One caller; returns its commits and the time at which it saw the end of the stretch.
async fn call(
    store: Arc<dyn Store>,
    requests: Arc<Requests>,
    workload: Workload,
    until: Until,
    watch: Stopwatch,
) -> Result<(Vec<Finished>, Duration), Failure> {
    let mut finished = Vec::new();
    loop {
        let started = watch.elapsed();
        match until {
            Until::Elapsed(length) if started >= length => return Ok((finished, length)),
            Until::Undecided(enough) if requests.undecided_count() >= enough => {
                return Ok((finished, started));
            }
            _ => {}
        }
        let Some(change) = requests.next(workload) else { return Ok((finished, started)) };
        let (request, change) = change?;
        match store.commit(change).await? {
            Outcome::Committed { versions, .. } => requests.committed(workload, request, &versions),
            Outcome::Conflict { .. } => {
                return Err(format!("{workload:?} {request}: a guard failed").into());
            }
        }
        let at = watch.elapsed();
        finished.push(Finished { at, latency: at.saturating_sub(started) });
    }
}
