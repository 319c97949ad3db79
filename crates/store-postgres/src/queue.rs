//! Changes that wait for a writer: bounded, and scheduled round-robin by tenant.

use std::time::Duration;

use countersign_core::{
    fair::{Bounds, FairQueue},
    metrics::WriterMetrics,
    store::{Change, Epoch, Outcome, PayloadId, StoreError},
};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

/// Limits of one transaction: a larger batch gains nothing and makes its callers wait.
const MAX_BATCH_CHANGES: usize = 100;
const MAX_BATCH_BYTES: usize = 1 << 20;

/// A caller that waits longer gets [`StoreError::OutcomeUnknown`]. The commit goes on.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) change: Change,
    /// The one that its tenant is taken to have.
    pub(crate) epoch: Epoch,
    /// Large payloads of the change that are already written, and that its commit confirms.
    pub(crate) pending_payloads: Vec<PayloadId>,
    pub(crate) reply: oneshot::Sender<Result<Outcome, StoreError>>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Notified when a job was pushed or the queue was closed.
    changed: Notify,
    batching: bool,
    /// Shared by all queues of the store.
    pub(crate) metrics: WriterMetrics,
}

#[derive(Debug)]
struct State {
    jobs: FairQueue<Job>,
    closed: bool,
}

impl Queue {
    pub(crate) fn new(capacity: usize, batching: bool, metrics: WriterMetrics) -> Self {
        let jobs = FairQueue::new(Bounds::half_each(capacity.max(2)));
        let state = Mutex::new(State { jobs, closed: false });
        Self { state, changed: Notify::new(), batching, metrics }
    }

    /// Queues `change` and waits for its outcome. A full queue is [`StoreError::Overloaded`] at once.
    pub(crate) async fn submit(
        &self,
        change: Change,
        epoch: Epoch,
        pending_payloads: Vec<PayloadId>,
    ) -> Result<Outcome, StoreError> {
        let (reply, outcome) = oneshot::channel();
        self.push(Job { change, epoch, pending_payloads, reply })?;
        match timeout(COMMIT_TIMEOUT, outcome).await {
            // The writer drops a job without a reply only when the store is closed.
            Ok(outcome) => outcome.unwrap_or_else(|_| Err(closed())),
            // It may still be committed, for instance when the standby is available again.
            Err(_) => Err(StoreError::OutcomeUnknown),
        }
    }

    fn push(&self, job: Job) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(closed());
        }
        let tenant = job.change.tenant.clone();
        state.jobs.push(&tenant, job).map_err(|_| StoreError::Overloaded)?;
        self.metrics.queued.inc();
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for jobs and takes one of each tenant in turn. Empty when the queue is closed and drained.
    pub(crate) async fn next_batch(&self) -> Vec<Job> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state.lock();
                let max_changes = if self.batching { MAX_BATCH_CHANGES } else { 1 };
                let bytes_of = |job: &Job| job.change.payload_bytes();
                let batch = state.jobs.pop_batch(max_changes, MAX_BATCH_BYTES, bytes_of);
                self.metrics.queued.dec_by(batch.len().try_into().unwrap_or(i64::MAX));
                if !batch.is_empty() || state.closed {
                    return batch;
                }
            }
            changed.await;
        }
    }

    /// Accepts no more jobs; those that are queued are still committed.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }
}

fn closed() -> StoreError {
    StoreError::unavailable("the store is closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(tenant: &str) -> Job {
        let change = Change::new(tenant.parse().unwrap());
        Job { change, epoch: Epoch(0), pending_payloads: Vec::new(), reply: oneshot::channel().0 }
    }

    #[tokio::test]
    async fn the_gauge_counts_what_waits_in_all_queues() {
        let metrics = WriterMetrics::default();
        let [one, other] = [(); 2].map(|()| Queue::new(10, true, metrics.clone()));
        one.push(job("a")).unwrap();
        other.push(job("a")).unwrap();
        other.push(job("b")).unwrap();
        assert_eq!(metrics.queued.get(), 3);
        assert_eq!(other.next_batch().await.len(), 2);
        assert_eq!(metrics.queued.get(), 1);
    }

    #[tokio::test]
    async fn a_closed_queue_is_drained_and_then_empty() {
        let queue = Queue::new(10, true, WriterMetrics::default());
        queue.push(job("a")).unwrap();
        queue.close();
        assert!(matches!(queue.push(job("a")), Err(StoreError::Unavailable(_))));
        assert_eq!(queue.next_batch().await.len(), 1);
        assert!(queue.next_batch().await.is_empty());
    }

    #[tokio::test]
    async fn without_batching_one_change_is_taken_at_a_time() {
        let queue = Queue::new(10, false, WriterMetrics::default());
        queue.push(job("a")).unwrap();
        queue.push(job("b")).unwrap();
        assert_eq!(queue.next_batch().await.len(), 1);
    }
}
