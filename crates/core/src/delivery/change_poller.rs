//! Polls the store for changes that no ring announced: compares what somebody on this node listens to with the store, in
//! a few large reads and not one for each listener. Needed wherever another process writes to the same store.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use countersign_wire::id::TenantId;

use crate::{
    error::Error,
    gateway::Gateway,
    notify::Ring,
    store::{Key, MailboxKey},
};

/// Mailboxes or records that one read compares.
const CHUNK: usize = 500;

/// Listeners are woken in groups of this size, with a pause between them: each of them will read something.
const WAKE_BATCH: usize = 50;
const WAKE_PAUSE: Duration = Duration::from_millis(1);

/// What the last round saw, by the hash of the ring: there may be many, and the map lives as long as the process.
#[derive(Debug, Default)]
pub struct ChangePoller {
    hasher: RandomState,
    seen: HashMap<u64, Seen>,
    round: u64,
}

#[derive(Debug)]
struct Seen {
    number: u64,
    round: u64,
}

impl ChangePoller {
    /// Whether this has changed since the last round, or is new: then it may have changed between its listener's first
    /// read and now.
    fn has_changed(&mut self, ring: &Ring, number: u64) -> bool {
        let seen = Seen { number, round: self.round };
        let known = self.seen.insert(self.hasher.hash_one(ring), seen);
        known.is_none_or(|known| known.number != number)
    }
}

impl Gateway {
    /// One round: rings for everything that has changed since the last one, and for what is new to it. Returns how many.
    /// What can't be read is left to the next round and stops nothing else; the first error is returned at the end.
    pub async fn poll_changes(&self, poller: &mut ChangePoller) -> Result<usize, Error> {
        self.follow_timeline();
        poller.round += 1;
        let mut mailboxes: Vec<MailboxKey> = Vec::new();
        let mut records: HashMap<TenantId, Vec<Key>> = HashMap::new();
        for ring in self.listened_to() {
            match ring {
                Ring::Mailbox(mailbox) => mailboxes.push(mailbox),
                Ring::Record(tenant, key) => records.entry(tenant).or_default().push(key),
            }
        }
        let mut changed = 0;
        let mut failed = None;
        for chunk in mailboxes.chunks(CHUNK) {
            match self.store.heads(chunk).await {
                Ok(heads) => {
                    let rings = chunk.iter().cloned().map(Ring::Mailbox).zip(heads);
                    changed += self.ring_for_changed(poller, rings).await;
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        for (tenant, keys) in records {
            for chunk in keys.chunks(CHUNK) {
                match self.store.load(&tenant, chunk).await {
                    Ok(loaded) => {
                        let versions = loaded.records.iter().map(|it| it.as_ref().map_or(0, |it| it.version));
                        let rings = chunk.iter().map(|key| Ring::Record(tenant.clone(), key.clone()));
                        changed += self.ring_for_changed(poller, rings.zip(versions)).await;
                    }
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
        }
        if let Some(error) = failed {
            // Nothing is forgotten: what was not read this time is compared with the last number that was.
            return Err(error.into());
        }
        let round = poller.round;
        poller.seen.retain(|_, seen| seen.round == round);
        Ok(changed)
    }

    async fn ring_for_changed(
        &self,
        poller: &mut ChangePoller,
        rings: impl Iterator<Item = (Ring, u64)>,
    ) -> usize {
        let changed: Vec<(Ring, u64)> =
            rings.filter(|(ring, number)| poller.has_changed(ring, *number)).collect();
        for group in changed.chunks(WAKE_BATCH) {
            for (ring, version) in group {
                if let Ring::Record(tenant, key) = ring {
                    self.cache.known.changed(tenant, key, *version);
                }
            }
            self.wake(group);
            tokio::time::sleep(WAKE_PAUSE).await;
        }
        changed.len()
    }
}
