//! Records that this node has read or written, with their versions. What is known may be old: a change that rests on it
//! guards the version that it used, so it costs a round and never decides wrongly.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use countersign_wire::id::TenantId;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    metrics::KnownRecordMetrics,
    store::{Key, Kind, Record},
};

/// What the records of one generation may take, in bytes; there are two generations.
const GENERATION_BYTES: usize = 32 << 20;

/// What an entry takes beside its content and its key, in bytes, about.
const ENTRY_BYTES: usize = 200;

/// Records that change rarely and are used often. A change that used one guards its version.
pub(crate) fn is_slow(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Policy
            | Kind::Enforcer
            | Kind::Approver
            | Kind::Route
            | Kind::Channels
            | Kind::Lease
            | Kind::Credential
            | Kind::Tenant
    )
}

/// Whether records of this kind are kept: slow ones, and the exchanges that this node has written.
pub(crate) fn is_kept(kind: Kind) -> bool {
    is_slow(kind) || kind == Kind::Exchange
}

/// What is known of one record.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// `None`: there is no such record.
    pub(crate) record: Option<Record>,
    /// When it was read or written.
    pub(crate) at: Instant,
}

impl Known {
    /// As of a record that does not exist.
    pub(crate) fn absent() -> Self {
        Self { record: None, at: Instant::now() }
    }
}

/// What is kept of one record, beside its key: its version and its content, if there is such a record.
#[derive(Debug, Clone)]
struct Entry {
    record: Option<(u64, Bytes)>,
    at: Instant,
}

impl Entry {
    fn version(&self) -> u64 {
        self.record.as_ref().map_or(0, |(version, _)| *version)
    }

    fn known_as(self, key: &Key) -> Known {
        let of = |(version, content)| Record { key: key.clone(), version, content };
        Known { record: self.record.map(of), at: self.at }
    }
}

type Generation = HashMap<TenantId, HashMap<Key, Entry>>;

/// Bounded by bytes. What is used stays: when the newer generation is full, the older one is dropped.
#[derive(Debug, Default)]
pub(crate) struct KnownRecords {
    generations: Mutex<Generations>,
    metrics: KnownRecordMetrics,
}

#[derive(Debug, Default)]
struct Generations {
    newer: Generation,
    older: Generation,
    newer_bytes: usize,
    older_bytes: usize,
}

impl KnownRecords {
    pub(crate) fn new(metrics: KnownRecordMetrics) -> Self {
        Self { generations: Mutex::default(), metrics }
    }

    /// What is known of a record, if it is at most this old.
    pub(crate) fn get(&self, tenant: &TenantId, key: &Key, max_age: Option<Duration>) -> Option<Known> {
        let known = self.generations.lock().get(tenant, key).map(|entry| entry.known_as(key));
        let known = known.filter(|known| max_age.is_none_or(|max_age| known.at.elapsed() <= max_age));
        match known {
            Some(_) => self.metrics.hits.inc(),
            None => self.metrics.misses.inc(),
        };
        known
    }

    /// Keeps what was read or written, unless something newer is known. Versions never repeat, and grow. `at` is when the
    /// store was asked: what it said was true then, and may have changed before it arrived.
    pub(crate) fn insert(&self, tenant: &TenantId, key: &Key, record: Option<Record>, at: Instant) {
        let record = record.map(|record| (record.version, record.content));
        let entry = Entry { record, at };
        let mut generations = self.generations.lock();
        match generations.peek(tenant, key) {
            // A record that is gone has no version: only its removal and its age end what was known of it.
            Some(current) if entry.record.is_some() && current.version() > entry.version() => {}
            _ => {
                let evicted = generations.insert(tenant, key, entry);
                self.metrics.evicted.inc_by(evicted as u64);
            }
        }
        let bytes = generations.newer_bytes + generations.older_bytes;
        drop(generations);
        self.metrics.bytes.set(bytes.try_into().unwrap_or(i64::MAX));
    }

    /// The record was changed to this version by somebody, zero if it was deleted: what is known of any other is old.
    pub(crate) fn changed(&self, tenant: &TenantId, key: &Key, version: u64) {
        let mut generations = self.generations.lock();
        if generations.peek(tenant, key).is_some_and(|known| known.version() != version) {
            generations.remove(tenant, key);
        }
    }

    pub(crate) fn forget(&self, tenant: &TenantId, key: &Key) {
        self.generations.lock().remove(tenant, key);
    }

    pub(crate) fn clear(&self) {
        *self.generations.lock() = Generations::default();
    }
}

impl Generations {
    fn peek(&self, tenant: &TenantId, key: &Key) -> Option<&Entry> {
        let find = |generation: &'_ Generation| generation.get(tenant).is_some_and(|of| of.contains_key(key));
        let generation = if find(&self.newer) { &self.newer } else { &self.older };
        generation.get(tenant)?.get(key)
    }

    /// Moves what is used to the newer generation.
    fn get(&mut self, tenant: &TenantId, key: &Key) -> Option<Entry> {
        if let Some(entry) = self.newer.get(tenant).and_then(|of| of.get(key)) {
            return Some(entry.clone());
        }
        let entry = self.take_older(tenant, key)?;
        self.insert(tenant, key, entry.clone());
        Some(entry)
    }

    /// Returns how many records it dropped.
    fn insert(&mut self, tenant: &TenantId, key: &Key, entry: Entry) -> usize {
        let mut evicted = 0;
        if self.newer_bytes >= GENERATION_BYTES {
            evicted = self.older.values().map(HashMap::len).sum();
            self.older = std::mem::take(&mut self.newer);
            self.older_bytes = std::mem::take(&mut self.newer_bytes);
        }
        self.take_older(tenant, key);
        self.newer_bytes += size(tenant, key, &entry);
        let of = match self.newer.get_mut(tenant) {
            Some(of) => of,
            None => self.newer.entry(tenant.clone()).or_default(),
        };
        if let Some(replaced) = of.insert(key.clone(), entry) {
            self.newer_bytes = self.newer_bytes.saturating_sub(size(tenant, key, &replaced));
        }
        evicted
    }

    fn remove(&mut self, tenant: &TenantId, key: &Key) {
        if let Some(removed) = self.newer.get_mut(tenant).and_then(|of| of.remove(key)) {
            self.newer_bytes = self.newer_bytes.saturating_sub(size(tenant, key, &removed));
        }
        self.take_older(tenant, key);
    }

    fn take_older(&mut self, tenant: &TenantId, key: &Key) -> Option<Entry> {
        let entry = self.older.get_mut(tenant)?.remove(key)?;
        self.older_bytes = self.older_bytes.saturating_sub(size(tenant, key, &entry));
        Some(entry)
    }
}

fn size(tenant: &TenantId, key: &Key, entry: &Entry) -> usize {
    let content = entry.record.as_ref().map_or(0, |(_, content)| content.len());
    ENTRY_BYTES + tenant.as_str().len() + key.id.len() + content
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn key(id: &str) -> Key {
        Key::new(Kind::Policy, id)
    }

    fn record(id: &str, version: u64, size: usize) -> Record {
        Record { key: key(id), version, content: Bytes::from(vec![0; size]) }
    }

    fn tenant() -> TenantId {
        "acme".parse().unwrap()
    }

    fn version(known: &KnownRecords, id: &str) -> Option<u64> {
        known.get(&tenant(), &key(id), None).map(|known| known.record.map_or(0, |record| record.version))
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_is_known_until_it_changes_or_is_too_old() {
        let known = KnownRecords::default();
        known.insert(&tenant(), &key("a"), Some(record("a", 7, 1)), Instant::now());
        known.changed(&tenant(), &key("a"), 7);
        assert_eq!(version(&known, "a"), Some(7), "our own write rings too");
        advance(Duration::from_secs(6)).await;
        assert!(known.get(&tenant(), &key("a"), Some(Duration::from_secs(5))).is_none());
        assert_eq!(version(&known, "a"), Some(7));
        known.changed(&tenant(), &key("a"), 8);
        assert_eq!(version(&known, "a"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_read_does_not_replace_a_newer_write() {
        let known = KnownRecords::default();
        known.insert(&tenant(), &key("a"), Some(record("a", 9, 1)), Instant::now());
        known.insert(&tenant(), &key("a"), Some(record("a", 8, 1)), Instant::now());
        assert_eq!(version(&known, "a"), Some(9));
        known.insert(&tenant(), &key("a"), None, Instant::now());
        assert_eq!(version(&known, "a"), Some(0), "it is known to be absent");
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_and_what_is_used_stays() {
        let known = KnownRecords::default();
        known.insert(&tenant(), &key("used"), Some(record("used", 1, 1)), Instant::now());
        for index in 0..300 {
            known.insert(&tenant(), &key(&index.to_string()), Some(record("x", 1, 1 << 20)), Instant::now());
            known.insert(&tenant(), &key("written"), Some(record("written", index, 1)), Instant::now());
            assert_eq!(version(&known, "used"), Some(1), "after {index}");
        }
        let generations = known.generations.lock();
        let bytes = |generation: &Generation| {
            let sizes = generation
                .iter()
                .flat_map(|(tenant, of)| of.iter().map(|(key, entry)| size(tenant, key, entry)));
            sizes.sum::<usize>()
        };
        assert_eq!(bytes(&generations.newer), generations.newer_bytes);
        assert_eq!(bytes(&generations.older), generations.older_bytes);
        let count = |generation: &Generation| generation.values().map(HashMap::len).sum::<usize>();
        let kept = count(&generations.newer) + count(&generations.older);
        assert!(kept <= 66, "{kept} records of 1 MB");
    }
}
