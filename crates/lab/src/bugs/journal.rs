//! A journal that is written after the act: a commit returns before it is on the disk, and is written with the next one.

use std::sync::Arc;

use countersign_client::journal::{Change, Commit, Journal, JournalError, Kind, MemoryJournal, Record};
use countersign_wire::timestamp::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use zeroize::Zeroizing;

/// Dropping it is a crash: what is not on the disk is gone.
pub(super) struct LateJournal {
    disk: Arc<MemoryJournal>,
    not_written: Mutex<Vec<(Vec<Change>, Timestamp)>>,
}

impl LateJournal {
    pub(super) fn new(disk: Arc<MemoryJournal>) -> Self {
        Self { disk, not_written: Mutex::default() }
    }

    fn not_written(&self) -> MutexGuard<'_, Vec<(Vec<Change>, Timestamp)>> {
        self.not_written.lock()
    }
}

impl Journal for LateJournal {
    fn commit(&self, changes: &[Change], now: Timestamp) -> Result<Commit, JournalError> {
        for (earlier, at) in std::mem::take(&mut *self.not_written()) {
            let _known = self.disk.commit(&earlier, at)?;
        }
        for change in changes {
            let conflict = match change {
                Change::Add(Record { kind, key, .. }) | Change::Absent(kind, key) => {
                    self.disk.get(*kind, key)?.map(|_| *kind)
                }
                Change::Present(kind, key) => self.disk.get(*kind, key)?.is_none().then_some(*kind),
                Change::Put(_) | Change::Remove(..) => None,
            };
            if let Some(kind) = conflict {
                return Ok(Commit::Conflict(kind));
            }
        }
        self.not_written().push((changes.to_vec(), now));
        Ok(Commit::Done)
    }

    fn get(&self, kind: Kind, key: &str) -> Result<Option<Record>, JournalError> {
        self.disk.get(kind, key)
    }

    fn list(&self, kind: Kind) -> Result<Vec<Record>, JournalError> {
        self.disk.list(kind)
    }

    fn last(&self, kind: Kind, prefix: &str) -> Result<Option<Record>, JournalError> {
        self.disk.last(kind, prefix)
    }

    fn keep_bundle(&self, name: &str, text: &str, now: Timestamp) -> Result<(), JournalError> {
        self.disk.keep_bundle(name, text, now)
    }

    fn bundles(&self) -> Result<Vec<String>, JournalError> {
        self.disk.bundles()
    }

    fn bundle(&self, name: &str) -> Result<Option<Zeroizing<String>>, JournalError> {
        self.disk.bundle(name)
    }
}
