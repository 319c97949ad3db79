//! Who writes a record next, on this node. Writers of one record that raced for it would each try again as often as somebody
//! else is faster; from the first conflict on they wait for each other instead. Other nodes still race: the store decides.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use countersign_wire::id::TenantId;
use parking_lot::Mutex;

use crate::store::{Change, Guard, Key};

type Contended = (TenantId, Key);

/// The records that somebody waits to write. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    records: Arc<Mutex<HashMap<Contended, Arc<tokio::sync::Mutex<()>>>>>,
    /// How many there are, so that nobody locks the map while there are none.
    count: Arc<AtomicUsize>,
}

/// A writer's turn at a record, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Turns,
    record: Contended,
    held: Option<tokio::sync::OwnedMutexGuard<()>>,
}

/// The record that writers of such a change compete for: the first that it guards. `None` if it guards none.
pub(crate) fn contended(change: &Change) -> Option<Key> {
    let of = |guard: &Guard| match guard {
        Guard::Version(key, _) | Guard::Absent(key) => Some(key.clone()),
        Guard::Seen(..) | Guard::Before(_) | Guard::NotBefore(_) => None,
    };
    change.guards.iter().find_map(of)
}

impl Turns {
    /// Whether somebody waits to write this record, or has its turn.
    pub(crate) fn are_taken(&self, tenant: &TenantId, key: &Key) -> bool {
        self.count.load(Ordering::Acquire) > 0
            && self.records.lock().contains_key(&(tenant.clone(), key.clone()))
    }

    /// Waits for a turn, after those who came before.
    pub(crate) async fn take(&self, tenant: &TenantId, key: Key) -> Turn {
        let record = (tenant.clone(), key);
        let queue = {
            let mut records = self.records.lock();
            let queue = Arc::clone(records.entry(record.clone()).or_default());
            self.count.store(records.len(), Ordering::Release);
            queue
        };
        // Before it waits: one that gives up leaves the queue too.
        let mut turn = Turn { turns: self.clone(), record, held: None };
        turn.held = Some(queue.lock_owned().await);
        turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.held = None;
        let mut records = self.turns.records.lock();
        // Whoever waits or has the turn holds the queue beside the map.
        if records.get(&self.record).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            records.remove(&self.record);
            self.turns.count.store(records.len(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::store::Kind;

    #[tokio::test]
    async fn writers_of_one_record_take_turns_and_nothing_is_left_behind() {
        let (turns, tenant) = (Turns::default(), "acme".parse().unwrap());
        let key = |id: &str| Key::new(Kind::Session, id);
        assert!(!turns.are_taken(&tenant, &key("s")));
        let first = turns.take(&tenant, key("s")).await;
        let mut second = Box::pin(turns.take(&tenant, key("s")));
        let mut gives_up = Box::pin(turns.take(&tenant, key("s")));
        let mut third = Box::pin(turns.take(&tenant, key("s")));
        for waiting in [&mut second, &mut gives_up, &mut third] {
            assert!(waiting.now_or_never().is_none());
        }
        assert!(turns.are_taken(&tenant, &key("s")) && !turns.are_taken(&tenant, &key("t")));
        drop(turns.take(&tenant, key("t")).now_or_never().expect("another record is free"));
        drop(gives_up);
        drop(first);
        assert!(third.as_mut().now_or_never().is_none(), "in the order in which they came");
        drop(second.await);
        drop(third.await);
        assert!(turns.records.lock().is_empty() && turns.count.load(Ordering::Acquire) == 0);
    }
}
