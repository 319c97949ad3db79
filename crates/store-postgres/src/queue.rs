//! Changes that wait for a writer: bounded, and fair between tenants.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_core::store::{Change, Outcome, PayloadId, StoreError};
use countersign_wire::id::TenantId;
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

/// What one transaction takes at most: beyond this a batch wins nothing and makes its callers wait.
const MAX_CHANGES: usize = 100;
const MAX_BYTES: usize = 1 << 20;

/// Who waits longer than this for a commit is told that it is not known what became of it. The commit goes on.
const LONGEST: Duration = Duration::from_secs(10);

/// A change, what was written for it ahead, and whoever waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) change: Change,
    pub(crate) ahead: Vec<PayloadId>,
    pub(crate) answer: oneshot::Sender<Result<Outcome, StoreError>>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Notify,
    bound: usize,
    batching: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Every tenant with something waiting, the next to be served in front.
    turns: VecDeque<TenantId>,
    waiting: HashMap<TenantId, VecDeque<Job>>,
    length: usize,
    closed: bool,
}

impl Queue {
    pub(crate) fn new(bound: usize, batching: bool) -> Self {
        Self { state: Mutex::default(), filled: Notify::new(), bound: bound.max(2), batching }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the outcome of `change`, or refuses at once when too much waits already.
    pub(crate) async fn submit(&self, change: Change, ahead: Vec<PayloadId>) -> Result<Outcome, StoreError> {
        let (answer, outcome) = oneshot::channel();
        self.push(Job { change, ahead, answer })?;
        match timeout(LONGEST, outcome).await {
            // The writer is gone only when the store was closed before it came to this job.
            Ok(outcome) => outcome.unwrap_or_else(|_| Err(StoreError::unavailable("the store is closed"))),
            // It may still be committed, for instance when the standby is back.
            Err(_) => Err(StoreError::OutcomeUnknown),
        }
    }

    fn push(&self, job: Job) -> Result<(), StoreError> {
        let mut state = self.state();
        let State { turns, waiting, length, closed } = &mut *state;
        if *closed {
            return Err(StoreError::unavailable("the store is closed"));
        }
        let tenant = job.change.tenant.clone();
        let own = waiting.entry(tenant.clone()).or_default();
        // No tenant may fill the queue alone.
        if *length >= self.bound || own.len() >= self.bound / 2 {
            if own.is_empty() {
                waiting.remove(&tenant);
            }
            return Err(StoreError::Overloaded);
        }
        if own.is_empty() {
            turns.push_back(tenant);
        }
        own.push_back(job);
        *length += 1;
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// What waits now, one job of each tenant in turn; empty when the queue is closed and done.
    pub(crate) async fn take(&self) -> Vec<Job> {
        loop {
            let filled = self.filled.notified();
            {
                let mut state = self.state();
                let batch = state.take(if self.batching { MAX_CHANGES } else { 1 });
                if !batch.is_empty() || state.closed {
                    return batch;
                }
            }
            filled.await;
        }
    }

    /// Takes no more jobs; what waits is still done.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.filled.notify_one();
    }
}

impl State {
    fn take(&mut self, max_changes: usize) -> Vec<Job> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < max_changes && bytes < MAX_BYTES {
            let Some(tenant) = self.turns.pop_front() else { break };
            let Some(own) = self.waiting.get_mut(&tenant) else { continue };
            if let Some(job) = own.pop_front() {
                bytes += job.change.payload_bytes();
                self.length -= 1;
                batch.push(job);
            }
            match own.is_empty() {
                true => drop(self.waiting.remove(&tenant)),
                false => self.turns.push_back(tenant),
            }
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(tenant: &str) -> Job {
        let change = Change::new(tenant.parse().unwrap());
        Job { change, ahead: Vec::new(), answer: oneshot::channel().0 }
    }

    fn tenants(batch: &[Job]) -> Vec<&str> {
        batch.iter().map(|job| job.change.tenant.as_str()).collect()
    }

    #[tokio::test]
    async fn tenants_take_turns() {
        let queue = Queue::new(100, true);
        for tenant in ["loud", "loud", "loud", "loud", "quiet", "other", "quiet"] {
            queue.push(job(tenant)).unwrap();
        }
        let batch = queue.take().await;
        assert_eq!(tenants(&batch), ["loud", "quiet", "other", "loud", "quiet", "loud", "loud"]);
    }

    #[tokio::test]
    async fn one_tenant_gets_at_most_half_of_the_queue() {
        let queue = Queue::new(10, true);
        assert_eq!((0..10).filter(|_| queue.push(job("loud")).is_ok()).count(), 5);
        assert_eq!(queue.push(job("loud")), Err(StoreError::Overloaded));
        assert_eq!((0..10).filter(|_| queue.push(job("quiet")).is_ok()).count(), 5);
        assert_eq!(queue.push(job("late")), Err(StoreError::Overloaded));
        assert_eq!(queue.take().await.len(), 10);
        assert_eq!(queue.push(job("late")), Ok(()));
    }

    #[tokio::test]
    async fn a_closed_queue_gives_out_what_it_has_and_then_nothing() {
        let queue = Queue::new(10, true);
        queue.push(job("a")).unwrap();
        queue.close();
        assert!(matches!(queue.push(job("a")), Err(StoreError::Unavailable(_))));
        assert_eq!(queue.take().await.len(), 1);
        assert!(queue.take().await.is_empty());
    }

    #[tokio::test]
    async fn without_batching_one_change_is_taken_at_a_time() {
        let queue = Queue::new(10, false);
        queue.push(job("a")).unwrap();
        queue.push(job("b")).unwrap();
        assert_eq!(queue.take().await.len(), 1);
    }
}
