//! Polls the store for changes that no ring announced. Needed wherever another process writes to the same store. One read
//! brings what all tenants have changed since the last, so a round costs as much as has changed, however many listen.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use countersign_wire::{id::TenantId, timestamp::Timestamp};

use crate::{
    error::Error,
    gateway::Gateway,
    notify::Ring,
    store::{Kind, Noted, Shard, StoreError},
};

/// Listeners are woken in groups of this size, with a pause between them: each of them will read something.
const WAKE_BATCH: usize = 50;
const WAKE_PAUSE: Duration = Duration::from_millis(1);

/// What was noted is kept for this long. A transaction takes seconds at most, and so does a round.
const KEPT: Duration = Duration::from_mins(5);

/// A node that has not read for this long may have missed something that was deleted meanwhile.
const MAX_GAP: Duration = Duration::from_mins(2);

/// What is deleted at once, and how often in one round: more than can be written until the next.
const FORGET_CHUNK: u32 = 5_000;
const FORGET_CHUNKS: usize = 20;

/// Up to where each shard was read.
#[derive(Debug, Default)]
pub struct ChangePoller {
    /// The only shard that is polled; `None` for all of them.
    shard: Option<Shard>,
    read: HashMap<Shard, ReadTo>,
}

#[derive(Debug)]
struct ReadTo {
    position: u64,
    /// The store's time of the last round.
    at: Timestamp,
    /// The history of the store that the position is of.
    timeline: u64,
    /// Positions of earlier rounds, oldest first: what was noted before one of them is deleted when it is old.
    earlier: VecDeque<(Timestamp, u64)>,
}

impl ChangePoller {
    /// Polls one shard, so that others don't wait for it while it does not answer.
    pub fn of(shard: Shard) -> Self {
        Self { shard: Some(shard), ..Self::default() }
    }
}

impl Gateway {
    /// One round: rings for everything that has changed since the last one, as far as somebody listens and did not hear it.
    /// Returns how many. A shard that can't be read is left to the next round and stops no other; the first error is returned
    /// at the end.
    pub async fn poll_changes(&self, poller: &mut ChangePoller) -> Result<usize, Error> {
        self.follow_timeline();
        let shards = poller.shard.map_or_else(|| self.shards().collect(), |shard| vec![shard]);
        let (mut changed, mut failed) = (0, None);
        for shard in shards {
            let read_to = poller.read.remove(&shard);
            match self.poll_shard(shard, read_to.as_ref()).await {
                Ok((count, position, at)) => {
                    changed += count;
                    let read_to = self.forget_old_changes(shard, read_to, position, at).await;
                    poller.read.insert(shard, read_to);
                }
                Err(error) => {
                    poller.read.extend(read_to.map(|read_to| (shard, read_to)));
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(changed), |error| Err(error.into()))
    }

    /// Returns how many were woken, and where and when the next round starts.
    async fn poll_shard(
        &self,
        shard: Shard,
        read_to: Option<&ReadTo>,
    ) -> Result<(usize, u64, Timestamp), StoreError> {
        let timeline = self.cache.timeline();
        let since = read_to.filter(|read_to| read_to.timeline == timeline);
        let first = self.store.noted(shard, since.map(|since| since.position)).await?;
        let (at, mut position) = (first.now, first.settled);
        // The clock of the store and not ours, which stands still while the machine sleeps.
        let is_known = since.is_some_and(|since| at.since(since.at) <= MAX_GAP);
        let mut changed = if is_known { 0 } else { self.wake_everybody(shard).await };
        let mut next = is_known.then_some(first);
        while let Some(page) = next.take() {
            changed += self.ring_for(page.changes).await;
            if let Some(from) = page.more_from {
                let page = self.store.noted(shard, Some(from)).await?;
                position = position.min(page.settled);
                next = Some(page);
            }
        }
        // A position of one history means nothing in another.
        match self.store.timeline() == timeline {
            true => Ok((changed, position, at)),
            false => Err(StoreError::unavailable("the store has another history since this round began")),
        }
    }

    /// Nobody knows what has changed: whatever is listened to may have.
    async fn wake_everybody(&self, shard: Shard) -> usize {
        self.cache.known.clear();
        let is_here = |tenant: &TenantId| self.store.shard_of(tenant) == shard;
        let rings = self.listened_to().into_iter().filter(|ring| match ring {
            Ring::Mailbox(mailbox) => is_here(&mailbox.tenant),
            Ring::Record(tenant, _) => is_here(tenant),
            // Nobody listens to one.
            Ring::Ended(..) => false,
        });
        let rings: Vec<(Ring, u64)> = rings.map(|ring| (ring, 0)).collect();
        self.wake_in_groups(&rings).await
    }

    async fn ring_for(&self, changes: Vec<(Noted, u64)>) -> usize {
        let mut rings = Vec::new();
        for (noted, number) in changes {
            let ring = match noted {
                Noted::Mailbox(mailbox) => Ring::Mailbox(mailbox),
                Noted::Record(tenant, key) => {
                    self.cache.known.changed(&tenant, &key, number);
                    Ring::Record(tenant, key)
                }
            };
            let is_heard = self.cache.listeners.has(&ring)
                || matches!(&ring, Ring::Record(_, key) if key.kind == Kind::Tenant);
            if is_heard {
                rings.push((ring, number));
            }
        }
        let woken = self.wake_in_groups(&rings).await;
        self.metrics.rings.late.inc_by(woken as u64);
        woken
    }

    async fn wake_in_groups(&self, rings: &[(Ring, u64)]) -> usize {
        let mut woken = 0;
        for group in rings.chunks(WAKE_BATCH) {
            woken += self.cache.listeners.wake_late(group).len();
            tokio::time::sleep(WAKE_PAUSE).await;
        }
        woken
    }

    /// Deletes what was noted long before this round. What can't be deleted now is deleted later.
    async fn forget_old_changes(
        &self,
        shard: Shard,
        last: Option<ReadTo>,
        position: u64,
        at: Timestamp,
    ) -> ReadTo {
        let timeline = self.cache.timeline();
        let last = last.filter(|last| last.timeline == timeline);
        let mut earlier = last.map(|last| last.earlier).unwrap_or_default();
        let mut old = None;
        while let Some((_, before)) = earlier.pop_front_if(|(read_at, _)| at.since(*read_at) > KEPT) {
            old = Some(before);
        }
        if let Some(before) = old {
            for _ in 0..FORGET_CHUNKS {
                match self.store.forget_noted(shard, before, FORGET_CHUNK).await {
                    Ok(deleted) if deleted < u64::from(FORGET_CHUNK) => break,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "old changes were not deleted; it will be retried");
                        break;
                    }
                }
            }
        }
        earlier.push_back((at, position));
        ReadTo { position, at, timeline, earlier }
    }
}
