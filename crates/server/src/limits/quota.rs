//! Something that all clients share, such as memory or connections. No tenant gets more than three quarters of it.

use std::sync::Arc;

use countersign_core::fair::{Bounds, FairQuota};
use countersign_wire::id::TenantId;
use parking_lot::Mutex;

/// A limited amount of something, in bytes or pieces. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct TenantQuota {
    reserved: Arc<Mutex<FairQuota>>,
}

/// What a tenant has reserved for one purpose; released when it is dropped.
#[derive(Debug)]
pub(crate) struct QuotaPermit {
    quota: TenantQuota,
    tenant: TenantId,
    amount: usize,
}

impl TenantQuota {
    pub(crate) fn new(capacity: usize) -> Self {
        let bounds = Bounds { of_all: capacity, of_one_tenant: capacity / 4 * 3 };
        Self { reserved: Arc::new(Mutex::new(FairQuota::new(bounds))) }
    }

    /// A permit of this tenant that has reserved nothing yet.
    pub(crate) fn permit(&self, tenant: &TenantId) -> QuotaPermit {
        QuotaPermit { quota: self.clone(), tenant: tenant.clone(), amount: 0 }
    }

    /// How much is reserved now, by all tenants.
    pub(crate) fn in_use(&self) -> usize {
        self.reserved.lock().held()
    }
}

impl QuotaPermit {
    /// Reserves so much more. Returns false, and reserves nothing, if that exceeds the quota.
    pub(crate) fn try_reserve(&mut self, more: usize) -> bool {
        let fits = self.quota.reserved.lock().take(&self.tenant, more);
        if fits {
            self.amount += more;
        }
        fits
    }

    /// Releases all that was reserved.
    pub(crate) fn release(&mut self) {
        let amount = std::mem::take(&mut self.amount);
        if amount > 0 {
            self.quota.reserved.lock().give_back(&self.tenant, amount);
        }
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_gets_three_quarters_and_leaves_the_rest_to_others() {
        let quota = TenantQuota::new(100);
        let [loud, quiet] = ["loud", "quiet"].map(|name| TenantId::new(name).unwrap());
        let (mut first, mut second) = (quota.permit(&loud), quota.permit(&loud));
        assert!(first.try_reserve(60) && !second.try_reserve(16) && second.try_reserve(15));
        let mut others = quota.permit(&quiet);
        assert!(!others.try_reserve(26) && others.try_reserve(25));
        drop(second);
        assert!(!others.try_reserve(16) && others.try_reserve(15));
        first.release();
        drop((first, others));
        assert_eq!(quota.in_use(), 0);
    }
}
