//! Permits that tenants take in turn: however many a tenant waits for, others wait for one of its turns at most.

use std::sync::{Arc, LazyLock};

use countersign_wire::id::TenantId;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Bounds, FairQueue};

/// A semaphore that is fair between tenants. Clones share it.
#[derive(Debug, Clone)]
pub struct FairSemaphore {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    free: usize,
    waiting: FairQueue<oneshot::Sender<FairPermit>>,
}

/// One permit, released when it is dropped.
#[derive(Debug)]
pub struct FairPermit {
    semaphore: FairSemaphore,
}

/// Who waits for what is not about one tenant. No key can be for it.
static GATEWAY: LazyLock<TenantId> =
    LazyLock::new(|| "(gateway)".parse().unwrap_or_else(|_| unreachable!("a valid id")));

impl FairSemaphore {
    pub fn new(permits: usize) -> Self {
        let state = State { free: permits, waiting: FairQueue::new(Bounds::NONE) };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// How many wait for a permit now.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.iter().filter(|waiting| !waiting.is_closed()).count()
    }

    /// Waits for a permit. Dropping the future gives up the place in the queue.
    pub async fn acquire(&self, tenant: &TenantId) -> FairPermit {
        let granted = {
            let mut state = self.state.lock();
            if state.free > 0 {
                state.free -= 1;
                return FairPermit { semaphore: self.clone() };
            }
            let (grant, granted) = oneshot::channel();
            // Without bounds, all are taken.
            drop(state.waiting.push(tenant, grant));
            granted
        };
        match granted.await {
            Ok(permit) => permit,
            // The semaphore lives as long as `self`, and never drops a sender without a permit.
            Err(_) => unreachable!("a waiting sender was dropped"),
        }
    }
}

impl FairSemaphore {
    /// As [`FairSemaphore::acquire`], for what is not about one tenant: the gateway takes its turn as one of them.
    pub async fn acquire_for_all(&self) -> FairPermit {
        self.acquire(&GATEWAY).await
    }
}

impl State {
    /// The next in line, if anybody waits. Nobody listens to one that gave up.
    fn next(&mut self) -> Option<oneshot::Sender<FairPermit>> {
        std::iter::from_fn(|| self.waiting.pop()).find(|next| !next.is_closed())
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let next = {
            let mut state = self.semaphore.state.lock();
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
        assert!(semaphore.state.lock().waiting.is_empty() && semaphore.state.lock().free == 1);
    }
}
