//! Changes that wait for the writer: bounded, and scheduled round-robin by tenant.

use std::{mem, sync::Arc};

use countersign_core::{
    fair::{Bounds, FairQueue, FairQuota},
    metrics::Gauge,
    store::{Change, StoreError},
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::{batch::CommitResult, claims::ClaimResult, options::Options};

/// Limits of one transaction: a larger batch would delay its first change.
const MAX_BATCH_CHANGES: usize = 256;
const MAX_BATCH_BYTES: usize = 4 * 1_024 * 1_024;

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) change: Change,
    reply: oneshot::Sender<CommitResult>,
    reservation: Reservation,
}

impl Job {
    pub(crate) fn reply(self, result: CommitResult) {
        // Before the reply: a caller that has its result may count on the freed space.
        drop(self.reservation);
        // The caller may no longer wait.
        let _ = self.reply.send(result);
    }
}

/// What the sweeper asks for: so many at most.
#[derive(Debug)]
pub(crate) enum SweeperJob {
    /// A claim of what is due.
    Claim { limit: u32, reply: oneshot::Sender<ClaimResult> },
    /// The deletion of rows of the audit log from before a time.
    Audit { before: Timestamp, limit: u32, reply: oneshot::Sender<Result<u64, StoreError>> },
    /// The deletion of what was noted before a position.
    Noted { before: u64, limit: u32, reply: oneshot::Sender<Result<u64, StoreError>> },
    /// The deletion of rows of a tenant.
    Erase { tenant: TenantId, limit: u32, reply: oneshot::Sender<Result<u64, StoreError>> },
}

/// What the writer does next.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) jobs: Vec<Job>,
    pub(crate) for_sweeper: Vec<SweeperJob>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Notified when a job was pushed or the queue was closed.
    changed: Condvar,
    max_bytes: usize,
    batching: bool,
    /// How many changes wait.
    length: Gauge,
}

#[derive(Debug)]
struct State {
    jobs: FairQueue<Job>,
    for_sweeper: Vec<SweeperJob>,
    /// Bytes of the changes that are queued or being written.
    bytes: FairQuota,
    closed: bool,
}

/// The bytes of a change that has no reply yet.
#[derive(Debug)]
struct Reservation {
    queue: Arc<Queue>,
    tenant: TenantId,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.queue.state.lock().bytes.give_back(&self.tenant, self.bytes);
    }
}

impl Queue {
    pub(crate) fn new(options: &Options) -> Self {
        let max_bytes = options.queued_bytes as usize;
        let state = State {
            jobs: FairQueue::new(Bounds::half_each(options.queued_changes.max(2))),
            for_sweeper: Vec::new(),
            bytes: FairQuota::new(Bounds::half_each(max_bytes)),
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            max_bytes,
            batching: options.batching,
            length: options.metrics.queued.clone(),
        }
    }

    /// Queues `change`; the receiver gets its result. A full queue is [`StoreError::Overloaded`] at once.
    pub(crate) fn push(
        self: &Arc<Self>,
        change: Change,
    ) -> Result<oneshot::Receiver<CommitResult>, StoreError> {
        let tenant = change.tenant.clone();
        // A change that is larger than the limit takes all of it instead of always failing.
        let bytes = bytes_of(&change).min(self.max_bytes);
        let mut state = self.state.lock();
        if state.closed {
            return Err(closed());
        }
        if !state.bytes.take_or_fill(&tenant, bytes) {
            return Err(StoreError::Overloaded);
        }
        let (reply, result) = oneshot::channel();
        let reservation = Reservation { queue: Arc::clone(self), tenant: tenant.clone(), bytes };
        let pushed = state.jobs.push(&tenant, Job { change, reply, reservation });
        self.length.inc_by(pushed.is_ok().into());
        // Dropping a job needs the lock.
        drop(state);
        pushed.map_err(|_| StoreError::Overloaded)?;
        self.changed.notify_one();
        Ok(result)
    }

    /// Queues what the sweeper asks for. Unbounded: it asks for one thing at a time.
    pub(crate) fn push_for_sweeper<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<T>) -> SweeperJob,
    ) -> Result<oneshot::Receiver<T>, StoreError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(closed());
        }
        let (reply, result) = oneshot::channel();
        state.for_sweeper.push(job(reply));
        drop(state);
        self.changed.notify_one();
        Ok(result)
    }

    /// Blocks until there are jobs and takes one of each tenant in turn, without waiting for more: while one batch is
    /// written, the next one accumulates. `None` when the queue is closed and drained.
    pub(crate) fn next_batch(&self) -> Option<Batch> {
        let mut state = self.state.lock();
        let is_idle =
            |state: &mut State| state.jobs.is_empty() && state.for_sweeper.is_empty() && !state.closed;
        self.changed.wait_while(&mut state, is_idle);
        let max_changes = if self.batching { MAX_BATCH_CHANGES } else { 1 };
        let jobs = state.jobs.pop_batch(max_changes, MAX_BATCH_BYTES, |job| bytes_of(&job.change));
        self.length.dec_by(jobs.len().try_into().unwrap_or(i64::MAX));
        let for_sweeper = mem::take(&mut state.for_sweeper);
        (!jobs.is_empty() || !for_sweeper.is_empty()).then_some(Batch { jobs, for_sweeper })
    }

    /// Accepts no more jobs; those that are queued are still committed.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }

    /// Accepts no more jobs and drops those that are queued: nobody will take them.
    pub(crate) fn abandon(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        self.length.dec_by(state.jobs.len().try_into().unwrap_or(i64::MAX));
        let jobs = mem::replace(&mut state.jobs, FairQueue::new(Bounds::NONE));
        let jobs = (jobs, mem::take(&mut state.for_sweeper));
        // Dropping a job needs the lock.
        drop(state);
        drop(jobs);
    }
}

fn bytes_of(change: &Change) -> usize {
    change.payload_bytes() + change.puts.iter().map(|put| put.content.len()).sum::<usize>()
}

fn closed() -> StoreError {
    StoreError::unavailable("the writer has ended")
}

#[cfg(test)]
mod tests {
    use countersign_core::store::PayloadId;

    use super::*;

    fn queue(queued_changes: usize, queued_bytes: u32, batching: bool) -> Arc<Queue> {
        Arc::new(Queue::new(&Options { batching, queued_changes, queued_bytes, ..Options::default() }))
    }

    #[test]
    fn the_gauge_counts_what_waits() {
        let options = Options::default();
        let (queue, waiting) = (Arc::new(Queue::new(&options)), options.metrics.queued);
        let _results = ["a", "a", "b"].map(|tenant| queue.push(change(tenant, 1)).unwrap());
        assert_eq!(waiting.get(), 3);
        assert_eq!(queue.next_batch().unwrap().jobs.len(), 3);
        assert_eq!(waiting.get(), 0);
        let _result = queue.push(change("a", 1)).unwrap();
        queue.abandon();
        assert_eq!(waiting.get(), 0);
    }

    fn change(tenant: &str, bytes: usize) -> Change {
        let mut change = Change::new(tenant.parse().unwrap());
        change.payloads.push((PayloadId(1), vec![0; bytes].into()));
        change
    }

    fn push(queue: &Arc<Queue>, tenant: &str) -> Result<(), StoreError> {
        queue.push(change(tenant, 0)).map(drop)
    }

    fn next_batch(queue: &Queue) -> Vec<Job> {
        queue.next_batch().map_or_else(Vec::new, |batch| batch.jobs)
    }

    #[test]
    fn one_tenant_gets_at_most_half_of_the_bytes_until_its_changes_are_written() {
        let queue = queue(100, 100, true);
        let push = |tenant: &str, bytes| queue.push(change(tenant, bytes)).map(drop);
        assert_eq!(push("loud", 30), Ok(()));
        assert_eq!(push("loud", 21), Err(StoreError::Overloaded));
        assert_eq!(push("loud", 20), Ok(()));
        assert_eq!(push("quiet", 51), Err(StoreError::Overloaded), "more than what is left");
        assert_eq!(push("quiet", 50), Ok(()));
        let batch = next_batch(&queue);
        assert_eq!(push("loud", 1), Err(StoreError::Overloaded), "they are still being written");
        for job in batch {
            job.reply(Err(StoreError::Overloaded));
        }
        assert_eq!(push("loud", 1_000), Ok(()), "a single change may have any size");
        assert_eq!(push("quiet", 1), Err(StoreError::Overloaded));
    }

    #[test]
    fn a_closed_queue_is_drained_and_then_empty() {
        let queue = queue(10, 100, true);
        push(&queue, "a").unwrap();
        queue.close();
        assert!(matches!(push(&queue, "a"), Err(StoreError::Unavailable(_))));
        assert_eq!(next_batch(&queue).len(), 1);
        assert!(next_batch(&queue).is_empty());
    }

    #[test]
    fn the_callers_of_an_abandoned_queue_do_not_wait_for_ever() {
        let queue = queue(10, 100, true);
        let mut result = queue.push(change("a", 10)).unwrap();
        let mut claim = queue.push_for_sweeper(|reply| SweeperJob::Claim { limit: 1, reply }).unwrap();
        queue.abandon();
        assert_eq!(claim.try_recv().unwrap_err(), oneshot::error::TryRecvError::Closed);
        assert_eq!(result.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert!(matches!(push(&queue, "a"), Err(StoreError::Unavailable(_))));
    }

    #[test]
    fn without_batching_one_change_is_taken_at_a_time() {
        let queue = queue(10, 100, false);
        push(&queue, "a").unwrap();
        push(&queue, "b").unwrap();
        assert_eq!(next_batch(&queue).len(), 1);
    }
}
