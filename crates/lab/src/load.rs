//! One stretch of commits: `in_flight` concurrent callers, each with one change at a time.

use std::{sync::Arc, time::Duration};

use countersign_core::store::{Outcome, Store};
use tokio::task::JoinSet;

use crate::{
    Failure,
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

/// The commits of a stretch.
#[derive(Debug)]
pub(crate) struct Committed {
    /// The length of the stretch: shorter than requested if there was nothing left to decide.
    pub(crate) elapsed: Duration,
    /// How long each commit took, ascending.
    pub(crate) latencies: Vec<Duration>,
}

/// A commit that finished at `at`.
struct Finished {
    at: Duration,
    latency: Duration,
}

/// Keeps `in_flight` commits running until the stretch ends.
pub(crate) async fn stretch(
    store: &Arc<dyn Store>,
    requests: &Arc<Requests>,
    workload: Workload,
    in_flight: u64,
    until: Until,
) -> Result<Committed, Failure> {
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
    let mut latencies: Vec<Duration> =
        finished.into_iter().filter(|commit| commit.at <= elapsed).map(|commit| commit.latency).collect();
    latencies.sort_unstable();
    Ok(Committed { elapsed, latencies })
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
