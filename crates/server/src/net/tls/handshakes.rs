//! How many handshakes are done at once.

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::timeout,
};

/// Handshakes at once. One costs a few kilobytes, for ten seconds at most.
const MAX_HANDSHAKES: usize = 4_096;

/// Handshakes with one network at once: one that never finishes its own must not keep others from theirs.
const MAX_OF_NETWORK: usize = 256;

/// A client that has no turn within this is disconnected: most would not wait for longer, and nobody holds a connection by
/// waiting.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct HandshakeTurns {
    all: Semaphore,
    networks: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
}

/// Permission to do a handshake.
#[derive(Debug)]
pub(super) struct HandshakeTurn<'a> {
    // In the order in which they are dropped.
    _of_all: SemaphorePermit<'a>,
    _of_network: OwnedSemaphorePermit,
    _queue: NetworkQueue<'a>,
}

/// Somebody of a network who has a turn or waits for one. Nothing is kept of a network that has nobody.
#[derive(Debug)]
struct NetworkQueue<'a> {
    network: IpAddr,
    turns: Option<Arc<Semaphore>>,
    all: &'a HandshakeTurns,
}

impl Default for HandshakeTurns {
    fn default() -> Self {
        Self { all: Semaphore::new(MAX_HANDSHAKES), networks: Mutex::default() }
    }
}

impl HandshakeTurns {
    /// Waits for a turn; `None` if there is none within [`TURN_TIMEOUT`].
    pub(super) async fn next(&self, network: IpAddr) -> Option<HandshakeTurn<'_>> {
        timeout(TURN_TIMEOUT, self.wait(network)).await.ok()?
    }

    async fn wait(&self, network: IpAddr) -> Option<HandshakeTurn<'_>> {
        let turns = {
            let mut networks = self.networks.lock();
            Arc::clone(networks.entry(network).or_insert_with(|| Arc::new(Semaphore::new(MAX_OF_NETWORK))))
        };
        let queue = NetworkQueue { network, turns: Some(Arc::clone(&turns)), all: self };
        let of_network = turns.acquire_owned().await.ok()?;
        let of_all = self.all.acquire().await.ok()?;
        Some(HandshakeTurn { _of_all: of_all, _of_network: of_network, _queue: queue })
    }
}

impl Drop for NetworkQueue<'_> {
    fn drop(&mut self) {
        let mut networks = self.all.networks.lock();
        self.turns = None;
        if networks.get(&self.network).is_some_and(|turns| Arc::strong_count(turns) == 1) {
            networks.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

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

    #[tokio::test(start_paused = true)]
    async fn who_gets_no_turn_in_time_is_turned_away_and_nothing_is_kept_of_it() {
        let turns = HandshakeTurns::default();
        let network: IpAddr = [192, 0, 2, 1].into();
        let mut held = Vec::new();
        for _ in 0..MAX_OF_NETWORK {
            held.push(turns.next(network).await.unwrap());
        }
        let began = Instant::now();
        assert!(turns.next(network).await.is_none());
        assert_eq!(began.elapsed().as_secs(), TURN_TIMEOUT.as_secs());
        // Whoever waits keeps the network's turns, and drops them when it gives up.
        let mut waiting = Box::pin(turns.next(network));
        assert!(timeout(Duration::from_secs(1), &mut waiting).await.is_err());
        held.clear();
        drop(waiting);
        assert!(turns.networks.lock().is_empty());
    }
}
