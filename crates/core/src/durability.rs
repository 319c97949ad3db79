//! Which versions of exchanges are known to be durable. A version that can be read may still be undone by a failover;
//! one that a commit of this node has written or confirmed can't, and need not be confirmed again.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, PoisonError},
};

use countersign_wire::id::TenantId;

use crate::store::{Change, Guard, Key, Kind};

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

    /// The versions that are durable once `change` is committed: what it writes, and what its guards met.
    pub(crate) fn confirmed_by(&self, change: &Change) -> Vec<u64> {
        let exchanges = change.guards.iter().filter(|guard| guard.key().is_some_and(is_exchange));
        let versions = exchanges.filter_map(|guard| match guard {
            Guard::Absent(key) => Some((key, 0)),
            Guard::Version(key, version) => Some((key, *version)),
            Guard::Seen(..) | Guard::Before(_) => None,
        });
        let written = |key: &Key| change.puts.iter().any(|put| put.key == *key);
        versions
            .map(|(key, version)| self.hash(&change.tenant, key, version + u64::from(written(key))))
            .collect()
    }

    pub(crate) fn insert(&self, hashes: Vec<u64>) {
        let mut sets = self.newer_and_older.lock().unwrap_or_else(PoisonError::into_inner);
        let (newer, older) = &mut *sets;
        if newer.len() >= MIN_CACHED_VERSIONS {
            *older = std::mem::take(newer);
        }
        newer.extend(hashes);
    }

    pub(crate) fn contains(&self, tenant: &TenantId, key: &Key, version: u64) -> bool {
        let hash = self.hash(tenant, key, version);
        let sets = self.newer_and_older.lock().unwrap_or_else(PoisonError::into_inner);
        sets.0.contains(&hash) || sets.1.contains(&hash)
    }
}

fn is_exchange(key: &Key) -> bool {
    key.kind == Kind::Exchange
}
