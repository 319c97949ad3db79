//! Listeners of one process, and how they are woken.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    endings::{EndingListeners, Endings},
    ring::Ring,
};
use crate::store::{Key, Kind, MailboxKey};

/// One listener's flags, one bit for each ring that it listens to. Not a queue: however often something rings,
/// and however slow the listener is, the memory is the same.
#[derive(Debug, Default)]
struct Flags {
    rung: AtomicU8,
    wake: Notify,
}

#[derive(Debug)]
struct Registration {
    flags: Arc<Flags>,
    bit: u8,
}

/// Who listens to one ring.
#[derive(Debug, Default)]
struct Listened {
    registrations: Vec<Registration>,
    /// The highest number that it rang with since somebody listens.
    highest: u64,
}

type Registrations = HashMap<Ring, Listened>;

impl Listened {
    fn wake(&self) {
        for registration in &self.registrations {
            registration.flags.rung.fetch_or(registration.bit, Ordering::AcqRel);
            registration.flags.wake.notify_one();
        }
    }
}

/// Whether a tenant is suspended concerns all of its keys. Nobody listens to that, which happens hardly ever, so all who
/// listen to anything of the tenant are looked for.
fn wake_tenant(registrations: &Registrations, ring: &Ring) {
    let Ring::Record(tenant, Key { kind: Kind::Tenant, .. }) = ring else { return };
    let of_tenant = |of: &Ring| matches!(of, Ring::Record(of, _) if of == tenant);
    registrations.iter().filter(|(of, _)| of_tenant(of)).for_each(|(_, listened)| listened.wake());
}

/// All listeners of one node. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Listeners {
    registrations: Arc<Mutex<Registrations>>,
    endings: EndingListeners,
}

impl Listeners {
    /// Wakes the listeners to any of these. The number is that of the newest delivery or the version of the record, zero
    /// where there is none.
    pub fn wake(&self, rings: &[(Ring, u64)]) {
        self.announce_endings(rings);
        let mut registrations = self.registrations.lock();
        for (ring, number) in rings {
            wake_tenant(&registrations, ring);
            let Some(listened) = registrations.get_mut(ring) else { continue };
            listened.highest = listened.highest.max(*number);
            listened.wake();
        }
    }

    /// As [`Listeners::wake`], but not where a mailbox already rang with this number or a higher one: what comes from
    /// another node may come twice.
    pub fn wake_once(&self, rings: &[(Ring, u64)]) {
        self.announce_endings(rings);
        let mut registrations = self.registrations.lock();
        for (ring, number) in rings {
            wake_tenant(&registrations, ring);
            let Some(listened) = registrations.get_mut(ring) else { continue };
            let known = matches!(ring, Ring::Mailbox(_)) && *number != 0 && *number <= listened.highest;
            if !known {
                listened.highest = listened.highest.max(*number);
                listened.wake();
            }
        }
    }

    /// As [`Listeners::wake`], but not where it already rang with this number or a higher one; zero is no number. Returns
    /// which were woken.
    pub(crate) fn wake_late<'r>(&self, rings: &'r [(Ring, u64)]) -> Vec<&'r Ring> {
        let mut registrations = self.registrations.lock();
        let mut woken = Vec::new();
        for (ring, number) in rings {
            wake_tenant(&registrations, ring);
            let Some(listened) = registrations.get_mut(ring) else { continue };
            if *number == 0 || *number > listened.highest {
                listened.highest = listened.highest.max(*number);
                listened.wake();
                woken.push(ring);
            }
        }
        woken
    }

    fn announce_endings(&self, rings: &[(Ring, u64)]) {
        for (ring, _) in rings {
            if let Ring::Ended(mailbox, request_id) = ring {
                self.endings.ended(mailbox, request_id);
            }
        }
    }

    /// Listens to requests that leave these mailboxes.
    pub(crate) fn endings(&self, of: Vec<MailboxKey>) -> Endings {
        self.endings.add(of)
    }

    /// Wakes everybody, and starts counting anew: the store's history is another one.
    pub fn wake_all(&self) {
        for listened in self.registrations.lock().values_mut() {
            listened.highest = 0;
            listened.wake();
        }
    }

    /// Whether anybody listens to this.
    pub fn has(&self, ring: &Ring) -> bool {
        self.registrations.lock().contains_key(ring)
    }

    /// The highest number that this rang with since somebody listens; zero if it did not.
    pub fn highest(&self, ring: &Ring) -> u64 {
        self.registrations.lock().get(ring).map_or(0, |listened| listened.highest)
    }

    /// Registers a listener to these, at most eight.
    pub fn add(&self, rings: Vec<Ring>) -> Listener {
        debug_assert!(rings.len() <= 8, "a listener has eight bits");
        let flags = Arc::new(Flags::default());
        let mut registrations = self.registrations.lock();
        for (index, ring) in rings.iter().enumerate() {
            let registration = Registration { flags: Arc::clone(&flags), bit: 1 << index };
            registrations.entry(ring.clone()).or_default().registrations.push(registration);
        }
        drop(registrations);
        Listener { flags, rings: rings.into(), listeners: self.clone() }
    }

    /// Everything that somebody listens to.
    pub fn rings(&self) -> Vec<Ring> {
        self.registrations.lock().keys().cloned().collect()
    }
}

/// Listens until it is dropped.
#[derive(Debug)]
pub struct Listener {
    flags: Arc<Flags>,
    rings: Box<[Ring]>,
    listeners: Listeners,
}

/// Which of a listener's rings have rung, by their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rung(u8);

impl Rung {
    /// Whether the ring at this index did.
    pub fn at(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }
}

impl Listener {
    /// Whether any has rung since [`Listener::rung`] last returned.
    pub fn has_rung(&self) -> bool {
        self.flags.rung.load(Ordering::Acquire) != 0
    }

    /// Returns when any has rung since the last call, or since listening began.
    pub async fn rung(&self) -> Rung {
        loop {
            match self.flags.rung.swap(0, Ordering::AcqRel) {
                0 => self.flags.wake.notified().await,
                rung => return Rung(rung),
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut registrations = self.listeners.registrations.lock();
        for ring in &self.rings {
            if let Some(listened) = registrations.get_mut(ring) {
                listened.registrations.retain(|registration| !Arc::ptr_eq(&registration.flags, &self.flags));
                if listened.registrations.is_empty() {
                    registrations.remove(ring);
                }
            }
        }
    }
}
