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
    store::{Key, Loaded, MailboxKey, Shard, StoreError},
};

/// Mailboxes or records that one read compares.
const CHUNK: usize = 500;

/// Listeners are woken in groups of this size, with a pause between them: each of them will read something.
const WAKE_BATCH: usize = 50;
const WAKE_PAUSE: Duration = Duration::from_millis(1);

/// What the last round saw, by the hash of the ring: there may be many, and the map lives as long as the process.
#[derive(Debug, Default)]
pub struct ChangePoller {
    /// The only shard that is polled; `None` for all of them.
    shard: Option<Shard>,
    hasher: RandomState,
    seen: HashMap<u64, Seen>,
    round: u64,
    /// The history of the store that the numbers are from.
    timeline: u64,
}

#[derive(Debug)]
struct Seen {
    number: u64,
    round: u64,
}

impl ChangePoller {
    /// Polls one shard, so that others don't wait for it while it does not answer.
    pub fn of(shard: Shard) -> Self {
        Self { shard: Some(shard), ..Self::default() }
    }

    /// Forgets everything if the store's history is another one: the same number means something else there.
    fn follow(&mut self, timeline: u64) {
        if self.timeline != timeline {
            self.timeline = timeline;
            self.seen.clear();
        }
    }

    /// Whether this has changed since the last round, or is new: then it may have changed between its listener's first
    /// read and now.
    fn has_changed(&mut self, ring: &Ring, number: u64) -> bool {
        let seen = Seen { number, round: self.round };
        let known = self.seen.insert(self.hasher.hash_one(ring), seen);
        known.is_none_or(|known| known.number != number)
    }

    /// Whether a round has seen this before.
    fn knows(&self, ring: &Ring) -> bool {
        self.seen.contains_key(&self.hasher.hash_one(ring))
    }

    /// Keeps what was seen of something that could not be read: its next number is compared with the last that was.
    fn was_not_read(&mut self, ring: &Ring) {
        if let Some(seen) = self.seen.get_mut(&self.hasher.hash_one(ring)) {
            seen.round = self.round;
        }
    }
}

impl Gateway {
    /// One round: rings for everything that has changed since the last one, and for what is new to it. Returns how many.
    /// What can't be read is left to the next round and stops nothing else; the first error is returned at the end.
    pub async fn poll_changes(&self, poller: &mut ChangePoller) -> Result<usize, Error> {
        self.follow_timeline();
        poller.follow(self.cache.timeline());
        poller.round += 1;
        let mut mailboxes: Vec<MailboxKey> = Vec::new();
        let mut records: HashMap<TenantId, Vec<Key>> = HashMap::new();
        for ring in self.listened_to() {
            let tenant = match &ring {
                Ring::Mailbox(mailbox) => &mailbox.tenant,
                Ring::Record(tenant, _) => tenant,
                // Nobody listens to one.
                Ring::Ended(..) => continue,
            };
            if poller.shard.is_some_and(|shard| self.store.shard_of(tenant) != shard) {
                continue;
            }
            match ring {
                Ring::Mailbox(mailbox) => mailboxes.push(mailbox),
                Ring::Record(tenant, key) => records.entry(tenant).or_default().push(key),
                Ring::Ended(..) => {}
            }
        }
        let mut changed = 0;
        let mut failed = None;
        for chunk in mailboxes.chunks(CHUNK) {
            let rings = chunk.iter().cloned().map(Ring::Mailbox);
            let heads = self.store.heads(chunk).await.unwrap_or_else(|error| {
                failed.get_or_insert(error);
                vec![None; chunk.len()]
            });
            if heads.contains(&None) {
                failed.get_or_insert_with(|| {
                    StoreError::unavailable("the heads of some mailboxes are not known")
                });
            }
            changed += self.ring_for_changed(poller, rings.zip(heads)).await;
        }
        for (tenant, keys) in records {
            for chunk in keys.chunks(CHUNK) {
                let rings = chunk.iter().map(|key| Ring::Record(tenant.clone(), key.clone()));
                let versions = match self.store.load(&tenant, chunk).await {
                    Ok(Loaded { records, .. }) => {
                        records.iter().map(|it| Some(it.as_ref().map_or(0, |it| it.version))).collect()
                    }
                    Err(error) => {
                        failed.get_or_insert(error);
                        vec![None; chunk.len()]
                    }
                };
                changed += self.ring_for_changed(poller, rings.zip(versions)).await;
            }
        }
        let round = poller.round;
        poller.seen.retain(|_, seen| seen.round == round);
        failed.map_or(Ok(changed), |error| Err(error.into()))
    }

    /// Rings for those whose number is another one than in the last round that knew it; `None` where it was not read.
    async fn ring_for_changed(
        &self,
        poller: &mut ChangePoller,
        rings: impl Iterator<Item = (Ring, Option<u64>)>,
    ) -> usize {
        let mut changed: Vec<(Ring, u64)> = Vec::new();
        for (ring, number) in rings {
            let was_known = poller.knows(&ring);
            match number {
                Some(number) if poller.has_changed(&ring, number) => {
                    if was_known && self.cache.listeners.highest(&ring) < number {
                        self.metrics.rings.late.inc();
                    }
                    changed.push((ring, number));
                }
                Some(_) => {}
                None => poller.was_not_read(&ring),
            }
        }
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
