//! Which versions of exchanges are known to be durable. A version that can be read may still be undone by a failover;
//! one that a commit of this node has written or confirmed can't, and need not be confirmed again.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
};

use countersign_wire::id::TenantId;
use parking_lot::Mutex;

use crate::{
    committed::Committed,
    store::{Key, Kind},
};

/// The cache holds at least this many versions, and twice as many at most.
const MIN_CACHED_VERSIONS: usize = 10_000;

/// Hashes of durable versions. Of two versions with equal hashes, once in 2^50, one would not be confirmed again.
#[derive(Debug, Default)]
pub(crate) struct DurabilityCache {
    hasher: RandomState,
    newer_and_older: Mutex<(HashSet<u64>, HashSet<u64>)>,
}

impl DurabilityCache {
    fn hash(&self, tenant: &TenantId, key: &Key, version: u64) -> u64 {
        self.hasher.hash_one((tenant, key, version))
    }

    /// Remembers the versions of exchanges that a commit has written, or that its guards met.
    pub(crate) fn confirm(&self, committed: &Committed) {
        let exchanges = committed.durable().filter(|(key, _)| key.kind == Kind::Exchange);
        let hashes: Vec<u64> =
            exchanges.map(|(key, version)| self.hash(committed.tenant(), key, version)).collect();
        if hashes.is_empty() {
            return;
        }
        let mut sets = self.newer_and_older.lock();
        let (newer, older) = &mut *sets;
        if newer.len() >= MIN_CACHED_VERSIONS {
            *older = std::mem::take(newer);
        }
        newer.extend(hashes);
    }

    /// Forgets all: the store's history is another one.
    pub(crate) fn clear(&self) {
        *self.newer_and_older.lock() = Default::default();
    }

    pub(crate) fn contains(&self, tenant: &TenantId, key: &Key, version: u64) -> bool {
        let hash = self.hash(tenant, key, version);
        let sets = self.newer_and_older.lock();
        sets.0.contains(&hash) || sets.1.contains(&hash)
    }
}
