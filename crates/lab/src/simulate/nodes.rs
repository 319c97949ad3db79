//! Whether the run of a node goes on, is stopped, or has ended.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::world::World;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    Running,
    /// It does nothing before this time.
    StoppedUntil(u64),
    Dead,
}

/// One run of one node, from its start to its end.
pub(crate) struct NodeRun {
    world: Arc<World>,
    name: String,
    /// Faults of the store and the doorbell end then.
    healed_at: u64,
    is_dead: AtomicBool,
    stopped_until: AtomicU64,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl NodeRun {
    pub(crate) fn new(world: &Arc<World>, name: String, healed_at: u64) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            name,
            healed_at,
            is_dead: AtomicBool::new(false),
            stopped_until: AtomicU64::new(0),
            tasks: Mutex::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn liveness(&self) -> Liveness {
        let until = self.stopped_until.load(Ordering::Relaxed);
        if self.is_dead.load(Ordering::Relaxed) {
            Liveness::Dead
        } else if self.world.now() < until {
            Liveness::StoppedUntil(until)
        } else {
            Liveness::Running
        }
    }

    pub(crate) fn has_faults(&self, now: u64) -> bool {
        now < self.healed_at
    }

    /// Whether it was stopped at any time since.
    pub(crate) fn was_stopped_since(&self, since: u64) -> bool {
        self.stopped_until.load(Ordering::Relaxed) > since
    }

    pub(crate) fn stop_until(&self, until: u64) {
        self.stopped_until.store(until, Ordering::Relaxed);
    }

    /// Ends it, with its tasks. What it has sent to others arrives, and no answer reaches it.
    pub(crate) fn kill(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        for task in std::mem::take(&mut *self.tasks.lock()) {
            task.abort();
        }
    }

    /// Runs a task of this node, until the node ends.
    pub(crate) fn spawn<F>(&self, task: F)
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        if self.liveness() == Liveness::Dead {
            return;
        }
        let task = tokio::spawn(task).abort_handle();
        let mut tasks = self.tasks.lock();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }
}
