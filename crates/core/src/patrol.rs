//! Looks whether a ring was lost: compares what is listened to on this node with the store, in a few large
//! reads and not one for each listener. Needed wherever somebody else writes to the same store.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use countersign_wire::id::TenantId;

use crate::{
    Error, Gateway,
    doorbell::Ring,
    store::{Key, MailboxKey},
};

/// Looked at in one read.
const CHUNK: usize = 500;

/// So many are woken at once, and then others after a pause: each of them will read something.
const WOKEN: usize = 50;
const PAUSE: Duration = Duration::from_millis(1);

/// What was seen on the last round, by the hash of what is listened to: there may be many, and this is kept for good.
#[derive(Debug, Default)]
pub struct Patrol {
    hasher: RandomState,
    seen: HashMap<u64, Seen>,
    round: u64,
}

#[derive(Debug)]
struct Seen {
    number: u64,
    round: u64,
}

impl Patrol {
    /// Whether this has changed since the last round, or is new: then it may have changed between its listener's first
    /// look and now.
    fn is_news(&mut self, ring: &Ring, number: u64) -> bool {
        let seen = Seen { number, round: self.round };
        let known = self.seen.insert(self.hasher.hash_one(ring), seen);
        known.is_none_or(|known| known.number != number)
    }
}

impl Gateway {
    /// One round: rings for everything that has changed since the last one, and for what is new to it.
    pub async fn patrol(&self, patrol: &mut Patrol) -> Result<usize, Error> {
        patrol.round += 1;
        let mut mailboxes: Vec<MailboxKey> = Vec::new();
        let mut records: HashMap<TenantId, Vec<Key>> = HashMap::new();
        for ring in self.doorbell.listened_to() {
            match ring {
                Ring::Mailbox(mailbox) => mailboxes.push(mailbox),
                Ring::Record(tenant, key) => records.entry(tenant).or_default().push(key),
            }
        }
        let mut changed = 0;
        for chunk in mailboxes.chunks(CHUNK) {
            let heads = self.store.heads(chunk).await?;
            let rings = chunk.iter().cloned().map(Ring::Mailbox).zip(heads);
            changed += self.ring_for_news(patrol, rings).await;
        }
        for (tenant, keys) in records {
            for chunk in keys.chunks(CHUNK) {
                let loaded = self.store.load(&tenant, chunk).await?;
                let versions = loaded.records.iter().map(|record| record.as_ref().map_or(0, |it| it.version));
                let rings = chunk.iter().map(|key| Ring::Record(tenant.clone(), key.clone())).zip(versions);
                changed += self.ring_for_news(patrol, rings).await;
            }
        }
        let round = patrol.round;
        patrol.seen.retain(|_, seen| seen.round == round);
        Ok(changed)
    }

    async fn ring_for_news(&self, patrol: &mut Patrol, rings: impl Iterator<Item = (Ring, u64)>) -> usize {
        let news: Vec<Ring> =
            rings.filter(|(ring, number)| patrol.is_news(ring, *number)).map(|(ring, _)| ring).collect();
        for some in news.chunks(WOKEN) {
            self.doorbell.ring(some);
            tokio::time::sleep(PAUSE).await;
        }
        news.len()
    }
}
