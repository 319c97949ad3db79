//! The one writer: a thread with the only connection that writes, and the queue before it.

use std::{sync::Arc, thread};

use countersign_core::store::{Change, Outcome, StoreError};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::{
    batch::{self, Answer},
    clock::Clock,
    open::OpenError,
    options::Options,
};

/// Where a batch ends: it shouldn't keep its first change waiting for long.
const BATCH_CHANGES: usize = 256;
const BATCH_BYTES: usize = 4 * 1_024 * 1_024;

#[derive(Debug)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Job>,
    /// Bytes that may still be queued.
    room: Arc<Semaphore>,
    most_bytes: u32,
    /// Comes, as an error, when the thread has ended.
    ended: oneshot::Receiver<()>,
}

#[derive(Debug)]
struct Job {
    change: Change,
    answer: oneshot::Sender<Answer>,
    room: OwnedSemaphorePermit,
}

impl Job {
    fn answer(self, answer: Answer) {
        // First the room: who has its answer may count on it.
        drop(self.room);
        // A caller that no longer waits is no fault.
        let _ = self.answer.send(answer);
    }
}

impl Writer {
    pub(crate) fn start(conn: Connection, options: &Options) -> Result<Self, OpenError> {
        let (queue, jobs) = mpsc::channel(options.queued_changes.max(1));
        let (end, ended) = oneshot::channel();
        let clock = options.clock.clone();
        let batch_changes = if options.batching { BATCH_CHANGES } else { 1 };
        thread::Builder::new().name("sqlite-writer".to_owned()).spawn(move || {
            run(conn, &clock, jobs, batch_changes);
            drop(end);
        })?;
        let room = Arc::new(Semaphore::new(options.queued_bytes as usize));
        Ok(Self { queue, room, most_bytes: options.queued_bytes, ended })
    }

    /// Queues a change and waits until it is durable. Once it is queued, nothing takes it back.
    pub(crate) async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        let (answer, answered) = oneshot::channel();
        // One that is larger than the whole room takes all of it, rather than wait in vain.
        let bytes = u32::try_from(bytes_of(&change)).unwrap_or(u32::MAX).min(self.most_bytes);
        let room = self.room.clone().try_acquire_many_owned(bytes).map_err(|_| StoreError::Overloaded)?;
        self.queue.try_send(Job { change, answer, room }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => StoreError::unavailable("the writer has ended"),
        })?;
        // No answer means that the thread panicked, and nobody knows how far it had come.
        answered.await.unwrap_or(Err(StoreError::OutcomeUnknown))
    }

    /// Ends when everything that was queued is done.
    pub(crate) async fn close(self) {
        drop(self.queue);
        let _ = self.ended.await;
    }
}

fn run(mut conn: Connection, clock: &Clock, mut jobs: mpsc::Receiver<Job>, batch_changes: usize) {
    // The queue ends when the store is dropped, and not before all of it has been taken.
    while let Some(first) = jobs.blocking_recv() {
        let batch = gather(first, &mut jobs, batch_changes);
        let changes: Vec<&Change> = batch.iter().map(|job| &job.change).collect();
        let answers = batch::write(&mut conn, clock, &changes);
        answer(batch, answers);
    }
}

/// The first job and whatever else waits by now. Nobody waits for a batch to fill up: while one is
/// written the next one gathers.
fn gather(first: Job, jobs: &mut mpsc::Receiver<Job>, batch_changes: usize) -> Vec<Job> {
    let mut bytes = bytes_of(&first.change);
    let mut batch = vec![first];
    while batch.len() < batch_changes
        && bytes < BATCH_BYTES
        && let Ok(job) = jobs.try_recv()
    {
        bytes += bytes_of(&job.change);
        batch.push(job);
    }
    batch
}

fn answer(batch: Vec<Job>, answers: Result<Vec<Answer>, StoreError>) {
    match answers {
        Ok(answers) => batch.into_iter().zip(answers).for_each(|(job, answer)| job.answer(answer)),
        Err(error) => batch.into_iter().for_each(|job| job.answer(Err(error.clone()))),
    }
}

fn bytes_of(change: &Change) -> usize {
    change.payload_bytes() + change.puts.iter().map(|put| put.content.len()).sum::<usize>()
}
