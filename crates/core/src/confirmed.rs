//! Which versions of exchanges are known to be durable. What can be read may still be undone by a failover; what a commit of
//! this node has confirmed can't, and need not be confirmed again before somebody is told of it.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, PoisonError},
};

use countersign_wire::id::TenantId;

use crate::store::{Change, Guard, Key, Kind};

/// So many are remembered at least, and twice as many at most.
const REMEMBERED: usize = 10_000;

/// Keeps hashes: of two that are equal by chance, once in 2^50, one would not be confirmed again.
#[derive(Debug, Default)]
pub(crate) struct Confirmed {
    hasher: RandomState,
    newer_and_older: Mutex<(HashSet<u64>, HashSet<u64>)>,
}

impl Confirmed {
    fn hash(&self, tenant: &TenantId, key: &Key, version: u64) -> u64 {
        self.hasher.hash_one((tenant, key, version))
    }

    /// A change was committed: what it wrote is durable, and what it found unchanged.
    pub(crate) fn by(&self, change: &Change) -> Vec<u64> {
        let exchanges = change.guards.iter().filter(|guard| guard.key().is_some_and(is_exchange));
        let versions = exchanges.filter_map(|guard| match guard {
            Guard::Absent(key) => Some((key, 0)),
            Guard::Version(key, version) => Some((key, *version)),
            Guard::Before(_) => None,
        });
        let written = |key: &Key| change.puts.iter().any(|put| put.key == *key);
        versions
            .map(|(key, version)| self.hash(&change.tenant, key, version + u64::from(written(key))))
            .collect()
    }

    pub(crate) fn remember(&self, hashes: Vec<u64>) {
        let mut sets = self.newer_and_older.lock().unwrap_or_else(PoisonError::into_inner);
        let (newer, older) = &mut *sets;
        if newer.len() >= REMEMBERED {
            *older = std::mem::take(newer);
        }
        newer.extend(hashes);
    }

    pub(crate) fn knows(&self, tenant: &TenantId, key: &Key, version: u64) -> bool {
        let hash = self.hash(tenant, key, version);
        let sets = self.newer_and_older.lock().unwrap_or_else(PoisonError::into_inner);
        sets.0.contains(&hash) || sets.1.contains(&hash)
    }
}

fn is_exchange(key: &Key) -> bool {
    key.kind == Kind::Exchange
}
