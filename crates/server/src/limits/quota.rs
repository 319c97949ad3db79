//! Something that all clients share, such as memory or connections. No tenant gets more than three quarters of it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use countersign_wire::id::TenantId;

/// A limited amount of something, in bytes or pieces. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct TenantQuota {
    capacity: usize,
    reserved: Arc<Mutex<Reserved>>,
}

#[derive(Debug, Default)]
struct Reserved {
    total: usize,
    by_tenant: HashMap<TenantId, usize>,
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
        Self { capacity, reserved: Arc::default() }
    }

    /// A permit of this tenant that has reserved nothing yet.
    pub(crate) fn permit(&self, tenant: &TenantId) -> QuotaPermit {
        QuotaPermit { quota: self.clone(), tenant: tenant.clone(), amount: 0 }
    }

    /// How much is reserved now, by all tenants.
    pub(crate) fn in_use(&self) -> usize {
        self.reserved().total
    }

    fn reserved(&self) -> MutexGuard<'_, Reserved> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaPermit {
    /// Reserves so much more. Returns false, and reserves nothing, if that exceeds the quota.
    pub(crate) fn try_reserve(&mut self, more: usize) -> bool {
        let mut reserved = self.quota.reserved();
        let own = reserved.by_tenant.get(&self.tenant).copied().unwrap_or_default();
        let capacity = self.quota.capacity;
        let fits = reserved.total + more <= capacity && own + more <= capacity / 4 * 3;
        if fits && more > 0 {
            reserved.total += more;
            reserved.by_tenant.insert(self.tenant.clone(), own + more);
            self.amount += more;
        }
        fits
    }

    /// Releases all that was reserved.
    pub(crate) fn release(&mut self) {
        if self.amount == 0 {
            return;
        }
        let mut reserved = self.quota.reserved();
        reserved.total -= self.amount;
        let own = reserved.by_tenant.get(&self.tenant).copied().unwrap_or_default();
        match own - self.amount {
            0 => drop(reserved.by_tenant.remove(&self.tenant)),
            left => drop(reserved.by_tenant.insert(self.tenant.clone(), left)),
        }
        self.amount = 0;
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
        assert!(quota.reserved().by_tenant.is_empty(), "nothing is kept of a tenant without permits");
        assert_eq!(quota.reserved().total, 0);
    }
}
