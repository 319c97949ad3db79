//! Who writes: several at once until the store fails or the process is killed, or one.

use std::{
    io::{self, Write as _},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use countersign_core::store::{Outcome, Store, StoreError};
use tokio::task::JoinSet;

use super::{
    changes::change,
    report::{Acked, CommitReport},
};

pub(super) const WRITERS: u64 = 16;

/// Commits changes from several concurrent writers and reports the result of each. A writer ends at its first
/// error; returns when all writers have ended.
pub async fn write_until_errors(
    store: Arc<dyn Store>,
    from: u64,
    report: impl Fn(CommitReport) + Clone + Send + 'static,
) {
    let next_id = Arc::new(AtomicU64::new(from));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, next_id, report) = (Arc::clone(&store), Arc::clone(&next_id), report.clone());
        writers.spawn(async move {
            loop {
                let id = next_id.fetch_add(1, Ordering::Relaxed);
                match store.commit(change(id)).await {
                    Ok(Outcome::Committed { numbers, versions, .. }) => {
                        let acked = Acked { id, number: numbers[0], version: versions[0] };
                        report(CommitReport::Acked(acked));
                    }
                    Err(StoreError::OutcomeUnknown) => return report(CommitReport::Unknown(id)),
                    Err(StoreError::Overloaded | StoreError::Unavailable(_)) => {
                        return report(CommitReport::Refused(id));
                    }
                    unexpected => panic!("change {id} is new and valid, but: {unexpected:?}"),
                }
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.expect("a writer does not panic");
    }
}

/// Commits the changes with these ids, one after the other.
pub async fn write(store: &dyn Store, ids: Range<u64>) -> Vec<Acked> {
    let mut acked = Vec::new();
    for id in ids {
        match store.commit(change(id)).await {
            Ok(Outcome::Committed { numbers, versions, .. }) => {
                acked.push(Acked { id, number: numbers[0], version: versions[0] });
            }
            other => panic!("change {id} is new and valid, but: {other:?}"),
        }
    }
    acked
}

/// The child's task: writes until it is killed, and prints each acknowledgement to standard output.
///
/// # Panics
///
/// If the store returns any error, since only the child is killed, not the store; and if its output is closed, so
/// that no child outlives its test.
pub async fn write_until_killed(store: Arc<dyn Store>, from: u64) {
    // The test harness may have printed part of a line.
    io::stdout().write_all(b"\n").expect("the test reads our output");
    let print = |report: CommitReport| match report {
        // Standard output is line-buffered: this is one write, complete when it returns.
        CommitReport::Acked(Acked { id, number, version }) => {
            io::stdout()
                .write_all(format!("acked {id} {number} {version}\n").as_bytes())
                .expect("the test reads our output");
        }
        other => panic!("the store runs, but returned: {other:?}"),
    };
    write_until_errors(store, from, print).await;
}
