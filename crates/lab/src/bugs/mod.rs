//! Bugs that are planted around the ports, to show that a violation is found. None is in a product crate: each is a
//! decorator of the store, the doorbell or the enforcer's journal.

mod bug;

mod doorbell;
mod journal;
mod store;

use std::sync::Arc;

use countersign_client::journal::{Journal, MemoryJournal};
use countersign_core::{notify::Doorbell, store::Store};

pub(crate) use bug::Bug;
pub(crate) use store::BugState;

impl Bug {
    /// The store with this bug. Nodes of one process share `state`.
    pub(crate) fn store(self, store: Arc<dyn Store>, state: &Arc<BugState>) -> Arc<dyn Store> {
        Arc::new(store::BuggyStore::new(store, self, state))
    }

    /// The doorbell with this bug.
    pub(crate) fn doorbell(self, doorbell: Box<dyn Doorbell>) -> Box<dyn Doorbell> {
        match self {
            Self::StaleHandOver => Box::new(doorbell::StaleHandOvers(doorbell)),
            _ => doorbell,
        }
    }

    /// An enforcer's journal on this disk with this bug, for one run of its process.
    pub(crate) fn journal(self, disk: Arc<MemoryJournal>) -> Arc<dyn Journal> {
        match self {
            Self::LateJournal => Arc::new(journal::LateJournal::new(disk)),
            _ => disk,
        }
    }
}
