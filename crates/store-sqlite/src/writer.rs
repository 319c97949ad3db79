//! The thread with the only connection that writes.

use std::{sync::Arc, thread};

use countersign_core::{
    metrics::WriterMetrics,
    store::{Change, Outcome, StoreError},
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use rusqlite::Connection;
use tokio::{
    sync::oneshot::{self, error::RecvError},
    time::Instant,
};

use crate::{
    audit,
    batch::{self, CommitResult},
    claims::{self, ClaimResult},
    clock::Clock,
    error::OpenError,
    noted,
    options::Options,
    queue::{Batch, Job, Queue, SweeperJob},
    tenants,
};

#[derive(Debug)]
pub(crate) struct Writer {
    queue: Arc<Queue>,
    /// Resolves, with an error, when the thread has ended.
    ended: oneshot::Receiver<()>,
}

impl Writer {
    pub(crate) fn start(conn: Connection, options: &Options) -> Result<Self, OpenError> {
        let queue = Arc::new(Queue::new(options));
        let (end, ended) = oneshot::channel();
        let (clock, metrics) = (options.clock.clone(), options.metrics.clone());
        let jobs = AbandonWhenDropped(Arc::clone(&queue));
        thread::Builder::new().name("sqlite-writer".to_owned()).spawn(move || {
            run(conn, &clock, &jobs.0, &metrics);
            drop(end);
        })?;
        Ok(Self { queue, ended })
    }

    /// Queues a change and waits until it is durable. A queued change is committed even if the caller stops waiting.
    pub(crate) async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        // No reply means that the thread panicked, before or after the commit.
        self.queue.push(change)?.await.unwrap_or(Err(StoreError::OutcomeUnknown))
    }

    /// Claims up to `limit` of what is due.
    pub(crate) async fn claim_due(&self, limit: u32) -> ClaimResult {
        self.queue.push_for_sweeper(|reply| SweeperJob::Claim { limit, reply })?.await.map_err(ended)?
    }

    /// Deletes up to `limit` rows of the audit log that are from before this time; says how many.
    pub(crate) async fn sweep_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let job = |reply| SweeperJob::Audit { before, limit, reply };
        self.queue.push_for_sweeper(job)?.await.map_err(ended)?
    }

    /// Deletes up to `limit` of what was noted before this position; says how many.
    pub(crate) async fn forget_noted(&self, before: u64, limit: u32) -> Result<u64, StoreError> {
        let job = |reply| SweeperJob::Noted { before, limit, reply };
        self.queue.push_for_sweeper(job)?.await.map_err(ended)?
    }

    /// Deletes up to `limit` rows of a tenant from each table; says how many.
    pub(crate) async fn erase(&self, tenant: TenantId, limit: u32) -> Result<u64, StoreError> {
        let job = |reply| SweeperJob::Erase { tenant, limit, reply };
        self.queue.push_for_sweeper(job)?.await.map_err(ended)?
    }

    /// Waits until everything that was queued is committed.
    pub(crate) async fn close(mut self) {
        self.queue.close();
        let _ = (&mut self.ended).await;
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// If the thread panics, the callers must not wait for a reply that never comes.
struct AbandonWhenDropped(Arc<Queue>);

impl Drop for AbandonWhenDropped {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn run(mut conn: Connection, clock: &Clock, queue: &Queue, metrics: &WriterMetrics) {
    while let Some(Batch { jobs, for_sweeper }) = queue.next_batch() {
        if !jobs.is_empty() {
            let changes: Vec<&Change> = jobs.iter().map(|job| &job.change).collect();
            let started = Instant::now();
            let results = batch::write(&mut conn, clock, &changes);
            metrics.batch_changes.observe_size(changes.len());
            metrics.write_seconds.observe(started.elapsed());
            reply(jobs, results);
        }
        for job in for_sweeper {
            // The caller may no longer wait; then the claim lapses.
            match job {
                SweeperJob::Claim { limit, reply } => {
                    drop(reply.send(claims::claim_due(&mut conn, clock, limit)));
                }
                SweeperJob::Audit { before, limit, reply } => {
                    drop(reply.send(audit::delete(&conn, before, limit)));
                }
                SweeperJob::Noted { before, limit, reply } => {
                    drop(reply.send(noted::forget(&conn, before, limit)));
                }
                SweeperJob::Erase { tenant, limit, reply } => {
                    drop(reply.send(tenants::erase(&mut conn, &tenant, limit)));
                }
            }
        }
    }
}

fn ended(_: RecvError) -> StoreError {
    StoreError::unavailable("the writer has ended")
}

fn reply(jobs: Vec<Job>, results: Result<Vec<CommitResult>, StoreError>) {
    match results {
        Ok(results) => jobs.into_iter().zip(results).for_each(|(job, result)| job.reply(result)),
        Err(error) => jobs.into_iter().for_each(|job| job.reply(Err(error.clone()))),
    }
}
