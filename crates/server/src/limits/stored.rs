//! How much a tenant may have stored.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use countersign_core::{Error, Gateway};
use countersign_wire::id::TenantId;
use parking_lot::Mutex;
use tokio::time::Instant;

/// What the store said is used for this long; what this node adds meanwhile is counted.
const KNOWN_FOR: Duration = Duration::from_secs(5);

/// Tenants that are remembered at once.
const MAX_REMEMBERED: usize = 10_000;

/// Space comes back when exchanges end and are deleted, which nobody waits for in a loop.
const RETRY_AFTER: Duration = Duration::from_mins(1);

/// A quota of bytes for each tenant. Several nodes may each let through what fits within [`KNOWN_FOR`].
#[derive(Debug)]
pub(crate) struct StoredQuota {
    /// In bytes; `u64::MAX` for no limit.
    max: AtomicU64,
    known: Mutex<HashMap<TenantId, Known>>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    bytes: u64,
    at: Instant,
}

impl StoredQuota {
    pub(crate) fn new(max: Option<u64>) -> Self {
        Self { max: AtomicU64::new(max.unwrap_or(u64::MAX)), known: Mutex::default() }
    }

    /// Holds for what is submitted from now on.
    pub(crate) fn set_max(&self, max: Option<u64>) {
        self.max.store(max.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Admits a body of this size, if the tenant has room for it. Not for decisions: an approval must not be lost.
    pub(crate) async fn admit(&self, gateway: &Gateway, tenant: &TenantId, size: usize) -> Result<(), Error> {
        let max = self.max.load(Ordering::Relaxed);
        if max == u64::MAX {
            return Ok(());
        }
        let stored = match self.known(tenant) {
            Some(bytes) => bytes,
            None => self.learn(tenant, gateway.store().stored_bytes(tenant).await?),
        };
        if stored.saturating_add(size as u64) > max {
            return Err(Error::RateLimited(RETRY_AFTER));
        }
        if let Some(known) = self.known.lock().get_mut(tenant) {
            known.bytes += size as u64;
        }
        Ok(())
    }

    fn known(&self, tenant: &TenantId) -> Option<u64> {
        let known = self.known.lock().get(tenant).copied();
        known.filter(|known| known.at.elapsed() < KNOWN_FOR).map(|known| known.bytes)
    }

    fn learn(&self, tenant: &TenantId, bytes: u64) -> u64 {
        let mut known = self.known.lock();
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(tenant.clone(), Known { bytes, at: Instant::now() });
        bytes
    }
}

#[cfg(test)]
mod tests {
    use countersign_core::store::{Change, PAYLOAD_OVERHEAD, PayloadId, Store as _};
    use tokio::time::advance;

    use super::*;
    use crate::test_node::TestNode;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_fit_is_refused_until_there_is_room_and_the_store_is_asked_every_five_seconds() {
        let node = TestNode::new();
        let (gateway, tenant) = (&node.app.gateway, &node.tenant);
        let mut change = Change::new(tenant.clone());
        change.payloads.push((PayloadId(1), vec![0; 600].into()));
        node.inner.commit(change).await.unwrap();
        let quota = StoredQuota::new(Some(PAYLOAD_OVERHEAD + 1_000));
        let refused = async |size| quota.admit(gateway, tenant, size).await.is_err();
        let reads = node.store.reads();
        assert!(refused(401).await && !refused(300).await, "600 are stored");
        assert!(refused(101).await && !refused(100).await, "what was let through counts");
        assert!(quota.admit(gateway, &"other".parse().unwrap(), 900).await.is_ok());
        assert_eq!(node.store.reads(), reads + 2, "one for each tenant");
        let mut change = Change::new(tenant.clone());
        change.drop_payloads.push(PayloadId(1));
        node.inner.commit(change).await.unwrap();
        assert!(refused(1).await, "not known yet");
        advance(KNOWN_FOR).await;
        assert!(!refused(2_000).await && refused(25).await);
        assert!(StoredQuota::new(None).admit(gateway, tenant, usize::MAX).await.is_ok());
    }
}
