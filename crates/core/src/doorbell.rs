//! The port that rings: "look at this", never what there is to see. A lost ring costs time, not data.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use countersign_wire::id::{RequestId, TenantId};
use tokio::sync::watch;

use crate::store::MailboxKey;

/// What to look at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ring {
    /// Something was put into this mailbox.
    Mailbox(MailboxKey),
    /// This exchange has moved.
    Exchange(TenantId, RequestId),
}

/// Rings after commits, and lets others listen.
pub trait Doorbell: Send + Sync + 'static {
    /// Wakes whoever listens to any of these, here and on other nodes. Never blocks, never fails.
    fn ring(&self, rings: &[Ring]);

    /// Listens from now on. Subscribe first, then read: what comes between the two is rung for.
    fn listen(&self, ring: Ring) -> Listener;
}

/// The doorbell within one process.
#[derive(Debug, Clone, Default)]
pub struct LocalDoorbell {
    bells: Arc<Mutex<HashMap<Ring, watch::Sender<()>>>>,
}

impl LocalDoorbell {
    fn bells(&self) -> MutexGuard<'_, HashMap<Ring, watch::Sender<()>>> {
        // Nothing panics while holding the lock, and a map of senders has no state to be half-written.
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many things are listened to.
    pub fn listened_to(&self) -> usize {
        self.bells().len()
    }
}

impl Doorbell for LocalDoorbell {
    fn ring(&self, rings: &[Ring]) {
        let bells = self.bells();
        for bell in rings.iter().filter_map(|ring| bells.get(ring)) {
            bell.send_replace(());
        }
    }

    fn listen(&self, ring: Ring) -> Listener {
        let receiver = self.bells().entry(ring.clone()).or_insert_with(|| watch::channel(()).0).subscribe();
        Listener { receiver: Some(receiver), ring, doorbell: self.clone() }
    }
}

/// Hears one bell until it is dropped. However often it rang since the last look, it tells once.
#[derive(Debug)]
pub struct Listener {
    receiver: Option<watch::Receiver<()>>,
    ring: Ring,
    doorbell: LocalDoorbell,
}

impl Listener {
    /// Returns when it has rung since the last call, or since listening began.
    pub async fn rung(&mut self) {
        if let Some(receiver) = &mut self.receiver
            && receiver.changed().await.is_ok()
        {
            return;
        }
        // The sender lives in the map for as long as this listener does.
        std::future::pending::<()>().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut bells = self.doorbell.bells();
        self.receiver = None;
        if bells.get(&self.ring).is_some_and(|bell| bell.receiver_count() == 0) {
            bells.remove(&self.ring);
        }
    }
}
