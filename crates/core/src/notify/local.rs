//! The doorbell within one process.

use super::{
    doorbell::Doorbell,
    listener::{Listener, Listeners},
    ring::Ring,
};

/// Rings within this process only. Other nodes find the commit with their change poller.
#[derive(Debug, Clone, Default)]
pub struct LocalDoorbell {
    listeners: Listeners,
}

impl Doorbell for LocalDoorbell {
    fn ring(&self, rings: &[Ring]) {
        self.listeners.wake(rings);
    }

    fn listen(&self, rings: Vec<Ring>) -> Listener {
        self.listeners.add(rings)
    }

    fn listened_to(&self) -> Vec<Ring> {
        self.listeners.rings()
    }
}
