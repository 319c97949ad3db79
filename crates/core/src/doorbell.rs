//! The port that rings: "look at this", never what there is to see. A lost ring costs time, not data.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use countersign_wire::id::TenantId;
use tokio::sync::Notify;

use crate::store::{Key, MailboxKey};

/// What to look at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ring {
    /// Something was put into this mailbox.
    Mailbox(MailboxKey),
    /// This record has changed.
    Record(TenantId, Key),
}

/// Rings after commits, and lets others listen.
pub trait Doorbell: Send + Sync + 'static {
    /// Wakes whoever listens to any of these, here and on other nodes. Never blocks, never fails.
    fn ring(&self, rings: &[Ring]);

    /// Listens to these, at most eight, from now on. Subscribe first, then read: what comes between the two
    /// is rung for.
    fn listen(&self, rings: Vec<Ring>) -> Listener;

    /// All that is listened to on this node.
    fn listened_to(&self) -> Vec<Ring>;
}

/// One listener's flags, a bit for each thing that it listens to. Not a queue: however often something rings,
/// and however slow the listener is, it costs this much and no more.
#[derive(Debug, Default)]
struct Bell {
    rung: AtomicU8,
    woken: Notify,
}

#[derive(Debug)]
struct Hook {
    bell: Arc<Bell>,
    bit: u8,
}

type Hooks = HashMap<Ring, Vec<Hook>>;

/// The doorbell within one process.
#[derive(Debug, Clone, Default)]
pub struct LocalDoorbell {
    hooks: Arc<Mutex<Hooks>>,
}

impl LocalDoorbell {
    fn hooks(&self) -> MutexGuard<'_, Hooks> {
        // Nothing panics while holding the lock.
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Doorbell for LocalDoorbell {
    fn ring(&self, rings: &[Ring]) {
        let hooks = self.hooks();
        for hook in rings.iter().filter_map(|ring| hooks.get(ring)).flatten() {
            hook.bell.rung.fetch_or(hook.bit, Ordering::AcqRel);
            hook.bell.woken.notify_one();
        }
    }

    fn listen(&self, rings: Vec<Ring>) -> Listener {
        debug_assert!(rings.len() <= 8, "a listener has eight bits");
        let bell = Arc::new(Bell::default());
        let mut hooks = self.hooks();
        for (place, ring) in rings.iter().enumerate() {
            let hook = Hook { bell: Arc::clone(&bell), bit: 1 << place };
            hooks.entry(ring.clone()).or_default().push(hook);
        }
        drop(hooks);
        Listener { bell, rings: rings.into(), doorbell: self.clone() }
    }

    fn listened_to(&self) -> Vec<Ring> {
        self.hooks().keys().cloned().collect()
    }
}

/// Hears its bells until it is dropped.
#[derive(Debug)]
pub struct Listener {
    bell: Arc<Bell>,
    rings: Box<[Ring]>,
    doorbell: LocalDoorbell,
}

/// Which of a listener's bells have rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rung(u8);

impl Rung {
    /// Whether the one at this place did.
    pub fn at(self, place: usize) -> bool {
        self.0 & (1 << place) != 0
    }
}

impl Listener {
    /// Returns when any has rung since the last call, or since listening began.
    pub async fn rung(&self) -> Rung {
        loop {
            match self.bell.rung.swap(0, Ordering::AcqRel) {
                0 => self.bell.woken.notified().await,
                rung => return Rung(rung),
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut hooks = self.doorbell.hooks();
        for ring in &self.rings {
            if let Some(listening) = hooks.get_mut(ring) {
                listening.retain(|hook| !Arc::ptr_eq(&hook.bell, &self.bell));
                if listening.is_empty() {
                    hooks.remove(ring);
                }
            }
        }
    }
}
