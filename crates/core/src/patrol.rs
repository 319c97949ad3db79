//! Looks whether a ring was lost: compares what is listened to on this node with the store, in a few large
//! reads and not one for each listener. Needed wherever somebody else writes to the same store.

use std::collections::HashMap;

use countersign_wire::id::TenantId;

use crate::{
    Error, Gateway,
    doorbell::Ring,
    store::{Key, MailboxKey},
};

/// Looked at in one read.
const CHUNK: usize = 500;

/// What was seen on the last round.
#[derive(Debug, Default)]
pub struct Patrol {
    seen: HashMap<Ring, u64>,
}

impl Gateway {
    /// One round: rings for everything that has changed since the last one, and for what is new to it.
    pub async fn patrol(&self, patrol: &mut Patrol) -> Result<usize, Error> {
        let listened = self.doorbell.listened_to();
        let mut mailboxes: Vec<MailboxKey> = Vec::new();
        let mut records: HashMap<TenantId, Vec<Key>> = HashMap::new();
        for ring in listened {
            match ring {
                Ring::Mailbox(mailbox) => mailboxes.push(mailbox),
                Ring::Record(tenant, key) => records.entry(tenant).or_default().push(key),
            }
        }
        let mut now = HashMap::with_capacity(patrol.seen.len());
        for chunk in mailboxes.chunks(CHUNK) {
            let heads = self.store.heads(chunk).await?;
            now.extend(chunk.iter().cloned().map(Ring::Mailbox).zip(heads));
        }
        for (tenant, keys) in records {
            for chunk in keys.chunks(CHUNK) {
                let loaded = self.store.load(&tenant, chunk).await?;
                let versions = loaded.records.iter().map(|record| record.as_ref().map_or(0, |it| it.version));
                let rings = chunk.iter().map(|key| Ring::Record(tenant.clone(), key.clone()));
                now.extend(rings.zip(versions));
            }
        }
        // What was not seen before may have changed between its listener's first look and now.
        let changed: Vec<Ring> = now
            .iter()
            .filter(|(ring, number)| patrol.seen.get(ring) != Some(number))
            .map(|(ring, _)| ring.clone())
            .collect();
        patrol.seen = now;
        self.doorbell.ring(&changed);
        Ok(changed.len())
    }
}
