//! Changes that wait for a writer: bounded, and scheduled round-robin by tenant.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_core::{
    metrics::WriterMetrics,
    store::{Change, Outcome, PayloadId, StoreError},
};
use countersign_wire::id::TenantId;
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
    /// Large payloads of the change that are already written, and that its commit confirms.
    pub(crate) pending_payloads: Vec<PayloadId>,
    pub(crate) reply: oneshot::Sender<Result<Outcome, StoreError>>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Notified when a job was pushed or the queue was closed.
    changed: Notify,
    capacity: usize,
    batching: bool,
    /// Shared by all queues of the store.
    pub(crate) metrics: WriterMetrics,
}

#[derive(Debug, Default)]
struct State {
    /// Every tenant with queued jobs; the next one to be served is in front.
    schedule: VecDeque<TenantId>,
    jobs: HashMap<TenantId, VecDeque<Job>>,
    length: usize,
    closed: bool,
}

impl Queue {
    pub(crate) fn new(capacity: usize, batching: bool, metrics: WriterMetrics) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), capacity: capacity.max(2), batching, metrics }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues `change` and waits for its outcome. A full queue is [`StoreError::Overloaded`] at once.
    pub(crate) async fn submit(
        &self,
        change: Change,
        pending_payloads: Vec<PayloadId>,
    ) -> Result<Outcome, StoreError> {
        let (reply, outcome) = oneshot::channel();
        self.push(Job { change, pending_payloads, reply })?;
        match timeout(COMMIT_TIMEOUT, outcome).await {
            // The writer drops a job without a reply only when the store is closed.
            Ok(outcome) => outcome.unwrap_or_else(|_| Err(closed())),
            // It may still be committed, for instance when the standby is available again.
            Err(_) => Err(StoreError::OutcomeUnknown),
        }
    }

    fn push(&self, job: Job) -> Result<(), StoreError> {
        let mut state = self.state();
        let State { schedule, jobs, length, closed: is_closed } = &mut *state;
        if *is_closed {
            return Err(closed());
        }
        let tenant = job.change.tenant.clone();
        let tenant_jobs = jobs.entry(tenant.clone()).or_default();
        // No tenant may fill the queue alone.
        if *length >= self.capacity || tenant_jobs.len() >= self.capacity / 2 {
            if tenant_jobs.is_empty() {
                jobs.remove(&tenant);
            }
            return Err(StoreError::Overloaded);
        }
        if tenant_jobs.is_empty() {
            schedule.push_back(tenant);
        }
        tenant_jobs.push_back(job);
        *length += 1;
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
                let mut state = self.state();
                let batch = state.take_batch(if self.batching { MAX_BATCH_CHANGES } else { 1 });
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
        self.state().closed = true;
        self.changed.notify_one();
    }
}

impl State {
    fn take_batch(&mut self, max_changes: usize) -> Vec<Job> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < max_changes && bytes < MAX_BATCH_BYTES {
            let Some(tenant) = self.schedule.pop_front() else { break };
            let Some(tenant_jobs) = self.jobs.get_mut(&tenant) else { continue };
            if let Some(job) = tenant_jobs.pop_front() {
                bytes += job.change.payload_bytes();
                self.length -= 1;
                batch.push(job);
            }
            match tenant_jobs.is_empty() {
                true => drop(self.jobs.remove(&tenant)),
                false => self.schedule.push_back(tenant),
            }
        }
        batch
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
        Job { change, pending_payloads: Vec::new(), reply: oneshot::channel().0 }
    }

    fn tenants(batch: &[Job]) -> Vec<&str> {
        batch.iter().map(|job| job.change.tenant.as_str()).collect()
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
    async fn tenants_take_turns() {
        let queue = Queue::new(100, true, WriterMetrics::default());
        for tenant in ["loud", "loud", "loud", "loud", "quiet", "other", "quiet"] {
            queue.push(job(tenant)).unwrap();
        }
        let batch = queue.next_batch().await;
        assert_eq!(tenants(&batch), ["loud", "quiet", "other", "loud", "quiet", "loud", "loud"]);
    }

    #[tokio::test]
    async fn one_tenant_gets_at_most_half_of_the_queue() {
        let queue = Queue::new(10, true, WriterMetrics::default());
        assert_eq!((0..10).filter(|_| queue.push(job("loud")).is_ok()).count(), 5);
        assert_eq!(queue.push(job("loud")), Err(StoreError::Overloaded));
        assert_eq!((0..10).filter(|_| queue.push(job("quiet")).is_ok()).count(), 5);
        assert_eq!(queue.push(job("late")), Err(StoreError::Overloaded));
        assert_eq!(queue.next_batch().await.len(), 10);
        assert_eq!(queue.push(job("late")), Ok(()));
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
