//! Permits that tenants take in turn: however many a tenant waits for, others wait for one of its turns at most.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use countersign_wire::id::TenantId;
use tokio::sync::oneshot;

/// A semaphore that is fair between tenants. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct FairSemaphore {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Every tenant with somebody waiting, the next to be served in front.
    turns: VecDeque<TenantId>,
    waiting: HashMap<TenantId, VecDeque<oneshot::Sender<FairPermit>>>,
}

/// One permit, released when it is dropped.
#[derive(Debug)]
pub(crate) struct FairPermit {
    semaphore: FairSemaphore,
}

impl FairSemaphore {
    pub(crate) fn new(permits: usize) -> Self {
        let state = State { free: permits, turns: VecDeque::new(), waiting: HashMap::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many wait for a permit now.
    pub(crate) fn waiting(&self) -> usize {
        let state = self.state();
        let waiting = state.waiting.values().flatten();
        waiting.filter(|waiting| !waiting.is_closed()).count()
    }

    /// Waits for a permit. Dropping the future gives up the place in the queue.
    pub(crate) async fn acquire(&self, tenant: &TenantId) -> FairPermit {
        let granted = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return FairPermit { semaphore: self.clone() };
            }
            let (grant, granted) = oneshot::channel();
            let State { turns, waiting, .. } = &mut *state;
            let own = waiting.entry(tenant.clone()).or_default();
            if own.is_empty() {
                turns.push_back(tenant.clone());
            }
            own.push_back(grant);
            granted
        };
        match granted.await {
            Ok(permit) => permit,
            // The semaphore lives as long as `self`, and never drops a sender without a permit.
            Err(_) => unreachable!("a waiting sender was dropped"),
        }
    }
}

impl State {
    /// The next in line, if anybody waits.
    fn next(&mut self) -> Option<oneshot::Sender<FairPermit>> {
        loop {
            let tenant = self.turns.pop_front()?;
            let own = self.waiting.get_mut(&tenant)?;
            let next = own.pop_front();
            match own.is_empty() {
                true => drop(self.waiting.remove(&tenant)),
                false => self.turns.push_back(tenant),
            }
            // Nobody listens to one that gave up.
            if let Some(next) = next.filter(|next| !next.is_closed()) {
                return Some(next);
            }
        }
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let next = {
            let mut state = self.semaphore.state();
            let next = state.next();
            if next.is_none() {
                state.free += 1;
            }
            next
        };
        if let Some(next) = next {
            // One that gives up meanwhile drops the permit, which comes back here.
            drop(next.send(Self { semaphore: self.semaphore.clone() }));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    #[tokio::test]
    async fn tenants_take_turns_and_who_gives_up_is_skipped() {
        let semaphore = FairSemaphore::new(1);
        let (loud, quiet) = (tenant("loud"), tenant("quiet"));
        let first = semaphore.acquire(&loud).await;
        let mut loud_waits: Vec<_> = (0..100).map(|_| Box::pin(semaphore.acquire(&loud))).collect();
        for wait in &mut loud_waits {
            assert!(wait.as_mut().now_or_never().is_none());
        }
        let mut quiet_waits = Box::pin(semaphore.acquire(&quiet));
        assert!(quiet_waits.as_mut().now_or_never().is_none());
        assert_eq!(semaphore.waiting(), 101);
        drop(first);
        let second = loud_waits.remove(0).await;
        drop(second);
        let third = quiet_waits.await;
        drop(loud_waits);
        drop(third);
        assert!(semaphore.acquire(&quiet).now_or_never().is_some(), "nobody is left in the queue");
        assert!(semaphore.state().waiting.is_empty() && semaphore.state().free == 1);
    }
}
