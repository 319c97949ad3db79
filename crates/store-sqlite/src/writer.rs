//! The queue, and the thread with the only connection that writes.

use std::{sync::Arc, thread};

use countersign_core::store::{Change, Outcome, StoreError};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::{
    batch::{self, CommitResult},
    clock::Clock,
    error::OpenError,
    options::Options,
};

/// Limits of one transaction: a larger batch would delay its first change.
const MAX_BATCH_CHANGES: usize = 256;
const MAX_BATCH_BYTES: usize = 4 * 1_024 * 1_024;

#[derive(Debug)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Job>,
    /// One permit for each byte that may still be queued.
    byte_permits: Arc<Semaphore>,
    max_queued_bytes: u32,
    /// Resolves, with an error, when the thread has ended.
    ended: oneshot::Receiver<()>,
}

#[derive(Debug)]
struct Job {
    change: Change,
    reply: oneshot::Sender<CommitResult>,
    bytes: OwnedSemaphorePermit,
}

impl Job {
    fn reply(self, result: CommitResult) {
        // Before the reply: a caller that has its result may count on the freed space.
        drop(self.bytes);
        // The caller may no longer wait.
        let _ = self.reply.send(result);
    }
}

impl Writer {
    pub(crate) fn start(conn: Connection, options: &Options) -> Result<Self, OpenError> {
        let (queue, jobs) = mpsc::channel(options.queued_changes.max(1));
        let (end, ended) = oneshot::channel();
        let clock = options.clock.clone();
        let max_changes = if options.batching { MAX_BATCH_CHANGES } else { 1 };
        thread::Builder::new().name("sqlite-writer".to_owned()).spawn(move || {
            run(conn, &clock, jobs, max_changes);
            drop(end);
        })?;
        let byte_permits = Arc::new(Semaphore::new(options.queued_bytes as usize));
        Ok(Self { queue, byte_permits, max_queued_bytes: options.queued_bytes, ended })
    }

    /// Queues a change and waits until it is durable. A queued change is committed even if the caller stops waiting.
    pub(crate) async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        let (reply, result) = oneshot::channel();
        // A change that is larger than the limit takes all permits instead of always failing.
        let bytes = u32::try_from(bytes_of(&change)).unwrap_or(u32::MAX).min(self.max_queued_bytes);
        let bytes =
            self.byte_permits.clone().try_acquire_many_owned(bytes).map_err(|_| StoreError::Overloaded)?;
        self.queue.try_send(Job { change, reply, bytes }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => StoreError::unavailable("the writer has ended"),
        })?;
        // No reply means that the thread panicked, before or after the commit.
        result.await.unwrap_or(Err(StoreError::OutcomeUnknown))
    }

    /// Waits until everything that was queued is committed.
    pub(crate) async fn close(self) {
        drop(self.queue);
        let _ = self.ended.await;
    }
}

fn run(mut conn: Connection, clock: &Clock, mut jobs: mpsc::Receiver<Job>, max_changes: usize) {
    // The channel ends when the store is dropped and all queued jobs were received.
    while let Some(first) = jobs.blocking_recv() {
        let batch = take_batch(first, &mut jobs, max_changes);
        let changes: Vec<&Change> = batch.iter().map(|job| &job.change).collect();
        let results = batch::write(&mut conn, clock, &changes);
        reply(batch, results);
    }
}

/// The first job and all others that are queued now, up to the limits. Does not wait for more: while one batch is
/// written, the next one accumulates.
fn take_batch(first: Job, jobs: &mut mpsc::Receiver<Job>, max_changes: usize) -> Vec<Job> {
    let mut bytes = bytes_of(&first.change);
    let mut batch = vec![first];
    while batch.len() < max_changes
        && bytes < MAX_BATCH_BYTES
        && let Ok(job) = jobs.try_recv()
    {
        bytes += bytes_of(&job.change);
        batch.push(job);
    }
    batch
}

fn reply(batch: Vec<Job>, results: Result<Vec<CommitResult>, StoreError>) {
    match results {
        Ok(results) => batch.into_iter().zip(results).for_each(|(job, result)| job.reply(result)),
        Err(error) => batch.into_iter().for_each(|job| job.reply(Err(error.clone()))),
    }
}

fn bytes_of(change: &Change) -> usize {
    change.payload_bytes() + change.puts.iter().map(|put| put.content.len()).sum::<usize>()
}
