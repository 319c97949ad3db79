//! The journal in memory.

use countersign_wire::timestamp::Timestamp;
use parking_lot::Mutex;
use zeroize::Zeroizing;

use super::{
    bundle_folder::{dated, to_remove},
    index::Index,
    port::{Change, Commit, Journal, JournalError, Kind, Record, Retention},
};

/// In memory only: for a process that asks once and ends, and for tests. It forgets with the process.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    content: Mutex<(Index, Vec<Bundle>)>,
    retention: Retention,
}

#[derive(Debug)]
struct Bundle {
    name: String,
    text: Zeroizing<String>,
}

impl MemoryJournal {
    /// With another time or size for finished exchanges.
    pub fn with_retention(retention: Retention) -> Self {
        Self { retention, ..Self::default() }
    }
}

impl Journal for MemoryJournal {
    fn commit(&self, changes: &[Change], now: Timestamp) -> Result<Commit, JournalError> {
        let (index, _) = &mut *self.content.lock();
        if let Some(kind) = index.conflict(changes) {
            return Ok(Commit::Conflict(kind));
        }
        for change in changes {
            index.apply(change.clone());
        }
        index.forget(now);
        Ok(Commit::Done)
    }

    fn get(&self, kind: Kind, key: &str) -> Result<Option<Record>, JournalError> {
        Ok(self.content.lock().0.get(kind, key))
    }

    fn list(&self, kind: Kind) -> Result<Vec<Record>, JournalError> {
        Ok(self.content.lock().0.list(kind))
    }

    fn last(&self, kind: Kind, prefix: &str) -> Result<Option<Record>, JournalError> {
        Ok(self.content.lock().0.last(kind, prefix))
    }

    fn keep_bundle(&self, name: &str, text: &str, now: Timestamp) -> Result<(), JournalError> {
        let (_, bundles) = &mut *self.content.lock();
        let text = Zeroizing::new(text.to_owned());
        bundles.push(Bundle { name: dated(name, now), text });
        let sizes: Vec<_> = bundles.iter().map(|bundle| (bundle.name.as_str(), bundle.text.len())).collect();
        let removed = to_remove(&sizes, self.retention, now);
        bundles.drain(..removed);
        Ok(())
    }

    fn bundles(&self) -> Result<Vec<String>, JournalError> {
        Ok(self.content.lock().1.iter().map(|bundle| bundle.name.clone()).collect())
    }

    fn bundle(&self, name: &str) -> Result<Option<Zeroizing<String>>, JournalError> {
        Ok(self.content.lock().1.iter().find(|bundle| bundle.name == name).map(|bundle| bundle.text.clone()))
    }
}
