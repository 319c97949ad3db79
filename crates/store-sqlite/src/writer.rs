//! The thread with the only connection that writes.

use std::{sync::Arc, thread};

use countersign_core::store::{Change, Outcome, StoreError};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{
    batch::{self, CommitResult},
    clock::Clock,
    error::OpenError,
    options::Options,
    queue::{Job, Queue},
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
        let clock = options.clock.clone();
        let jobs = AbandonWhenDropped(Arc::clone(&queue));
        thread::Builder::new().name("sqlite-writer".to_owned()).spawn(move || {
            run(conn, &clock, &jobs.0);
            drop(end);
        })?;
        Ok(Self { queue, ended })
    }

    /// Queues a change and waits until it is durable. A queued change is committed even if the caller stops waiting.
    pub(crate) async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        // No reply means that the thread panicked, before or after the commit.
        self.queue.push(change)?.await.unwrap_or(Err(StoreError::OutcomeUnknown))
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

fn run(mut conn: Connection, clock: &Clock, queue: &Queue) {
    loop {
        let batch = queue.next_batch();
        if batch.is_empty() {
            return;
        }
        let changes: Vec<&Change> = batch.iter().map(|job| &job.change).collect();
        let results = batch::write(&mut conn, clock, &changes);
        reply(batch, results);
    }
}

fn reply(batch: Vec<Job>, results: Result<Vec<CommitResult>, StoreError>) {
    match results {
        Ok(results) => batch.into_iter().zip(results).for_each(|(job, result)| job.reply(result)),
        Err(error) => batch.into_iter().for_each(|job| job.reply(Err(error.clone()))),
    }
}
