//! How much of something bounded each tenant holds.

use std::collections::HashMap;

use countersign_wire::id::TenantId;

use super::bounds::Bounds;

#[derive(Debug)]
pub struct FairQuota {
    bounds: Bounds,
    held: usize,
    by_tenant: HashMap<TenantId, usize>,
}

impl FairQuota {
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, held: 0, by_tenant: HashMap::new() }
    }

    /// How much is held, by all tenants.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Takes so much. Returns false, and takes nothing, if that is beyond the bounds.
    pub fn take(&mut self, tenant: &TenantId, amount: usize) -> bool {
        self.take_within(self.bounds, tenant, amount)
    }

    /// As [`Self::take`], but the only thing that a tenant holds may be all that is left.
    pub fn take_or_fill(&mut self, tenant: &TenantId, amount: usize) -> bool {
        let of_all = self.bounds.of_all;
        match self.by_tenant.contains_key(tenant) {
            true => self.take(tenant, amount),
            false => self.take_within(Bounds { of_all, of_one_tenant: of_all }, tenant, amount),
        }
    }

    fn take_within(&mut self, bounds: Bounds, tenant: &TenantId, amount: usize) -> bool {
        let own = self.by_tenant.get(tenant).copied().unwrap_or_default();
        let fits = bounds.admit(self.held, own, amount);
        if fits && amount > 0 {
            self.held += amount;
            self.by_tenant.insert(tenant.clone(), own + amount);
        }
        fits
    }

    /// Gives back what was taken. Nothing is kept of a tenant that holds nothing.
    pub fn give_back(&mut self, tenant: &TenantId, amount: usize) {
        self.held -= amount;
        if let Some(own) = self.by_tenant.get_mut(tenant) {
            *own -= amount;
            if *own == 0 {
                self.by_tenant.remove(tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    #[test]
    fn a_tenant_gets_its_share_and_leaves_the_rest_to_others() {
        let mut quota = FairQuota::new(Bounds { of_all: 100, of_one_tenant: 75 });
        let (loud, quiet) = (tenant("loud"), tenant("quiet"));
        assert!(quota.take(&loud, 60) && !quota.take(&loud, 16) && quota.take(&loud, 15));
        assert!(!quota.take(&quiet, 26) && quota.take(&quiet, 25));
        quota.give_back(&loud, 15);
        assert!(!quota.take(&quiet, 16) && quota.take(&quiet, 15));
        quota.give_back(&loud, 60);
        quota.give_back(&quiet, 40);
        assert!(quota.by_tenant.is_empty(), "nothing is kept of a tenant that holds nothing");
        assert_eq!(quota.held(), 0);
    }

    #[test]
    fn the_only_thing_that_a_tenant_holds_may_fill_what_is_left() {
        let mut quota = FairQuota::new(Bounds::half_each(100));
        let (loud, quiet) = (tenant("loud"), tenant("quiet"));
        assert!(!quota.take(&loud, 51) && quota.take_or_fill(&loud, 90));
        assert!(!quota.take_or_fill(&loud, 1), "it has more than its share");
        assert!(!quota.take_or_fill(&quiet, 11) && quota.take_or_fill(&quiet, 10));
    }
}
