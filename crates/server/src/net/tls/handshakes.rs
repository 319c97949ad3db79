//! How many handshakes are done at once.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Handshakes at once. One costs a few kilobytes, for ten seconds at most.
const MAX_HANDSHAKES: usize = 4_096;

/// Handshakes with one network at once: one that never finishes its own must not keep others from theirs.
const MAX_OF_NETWORK: usize = 256;

#[derive(Debug)]
pub(super) struct HandshakeTurns {
    all: Semaphore,
    networks: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
}

/// Permission to do a handshake.
#[derive(Debug)]
pub(super) struct HandshakeTurn<'a> {
    network: IpAddr,
    of_network: Option<OwnedSemaphorePermit>,
    _of_all: SemaphorePermit<'a>,
    turns: &'a HandshakeTurns,
}

impl Default for HandshakeTurns {
    fn default() -> Self {
        Self { all: Semaphore::new(MAX_HANDSHAKES), networks: Mutex::default() }
    }
}

impl HandshakeTurns {
    /// Waits for a turn. `None` never happens: the turns end with the process.
    pub(super) async fn next(&self, network: IpAddr) -> Option<HandshakeTurn<'_>> {
        let turns_of_network = {
            let mut networks = self.networks.lock();
            Arc::clone(networks.entry(network).or_insert_with(|| Arc::new(Semaphore::new(MAX_OF_NETWORK))))
        };
        let of_network = turns_of_network.acquire_owned().await.ok();
        let of_all = self.all.acquire().await.ok()?;
        Some(HandshakeTurn { network, of_network, _of_all: of_all, turns: self })
    }
}

impl Drop for HandshakeTurn<'_> {
    fn drop(&mut self) {
        let mut networks = self.turns.networks.lock();
        self.of_network = None;
        // Nobody has a turn or waits for one.
        if networks.get(&self.network).is_some_and(|turns| Arc::strong_count(turns) == 1) {
            networks.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_network_that_stalls_keeps_no_other_from_its_turn_and_nothing_is_kept_of_it() {
        let turns = HandshakeTurns::default();
        let (one, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let mut held = Vec::new();
        for _ in 0..MAX_OF_NETWORK {
            held.push(turns.next(one).await.unwrap());
        }
        let mut waiting = Box::pin(turns.next(one));
        let soon = Duration::from_millis(50);
        assert!(timeout(soon, &mut waiting).await.is_err());
        held.push(timeout(soon, turns.next(other)).await.unwrap().unwrap());
        held.clear();
        drop(timeout(Duration::from_secs(1), waiting).await.unwrap());
        assert!(turns.networks.lock().is_empty());
    }
}
