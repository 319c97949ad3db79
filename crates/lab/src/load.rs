//! One stretch: as many callers as changes are in flight, each with one change at a time.

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
    /// After so long. Commits that are answered later do not count.
    Elapsed(Duration),
    /// When so many requests wait for their decision.
    Undecided(u64),
}

/// What was committed in a stretch.
#[derive(Debug)]
pub(crate) struct Committed {
    /// How long it took: what was asked for, or less where there was nothing left to decide.
    pub(crate) elapsed: Duration,
    /// How long each commit took, ascending.
    pub(crate) latencies: Vec<Duration>,
}

/// A commit that was answered.
struct Answered {
    at: Duration,
    latency: Duration,
}

/// Keeps `in_flight` changes waiting for their commit.
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
    let mut answered = Vec::new();
    let mut elapsed = Duration::MAX;
    while let Some(caller) = callers.join_next().await {
        let (commits, ended) = caller??;
        answered.extend(commits);
        elapsed = elapsed.min(ended);
    }
    let mut latencies: Vec<Duration> =
        answered.into_iter().filter(|commit| commit.at <= elapsed).map(|commit| commit.latency).collect();
    latencies.sort_unstable();
    Ok(Committed { elapsed, latencies })
}

/// One caller; also says when it found that the stretch was over.
async fn call(
    store: Arc<dyn Store>,
    requests: Arc<Requests>,
    workload: Workload,
    until: Until,
    watch: Stopwatch,
) -> Result<(Vec<Answered>, Duration), Failure> {
    let mut answered = Vec::new();
    loop {
        let asked = watch.elapsed();
        match until {
            Until::Elapsed(length) if asked >= length => return Ok((answered, length)),
            Until::Undecided(enough) if requests.undecided_count() >= enough => return Ok((answered, asked)),
            _ => {}
        }
        let Some(change) = requests.next(workload) else { return Ok((answered, asked)) };
        let (request, change) = change?;
        match store.commit(change).await? {
            Outcome::Committed { .. } => requests.committed(workload, request),
            Outcome::Conflict { .. } => {
                return Err(format!("{workload:?} {request}: a guard did not hold").into());
            }
        }
        let at = watch.elapsed();
        answered.push(Answered { at, latency: at.saturating_sub(asked) });
    }
}
