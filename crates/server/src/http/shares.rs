//! What all clients share: there is so much of it, and no tenant gets more than three quarters.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use countersign_wire::id::TenantId;

/// Something of which there is only so much: memory for bodies, connections.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    most: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    in_all: usize,
    by_tenant: HashMap<TenantId, usize>,
}

/// A tenant's part of it, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    of: Shares,
    tenant: TenantId,
    size: usize,
}

impl Shares {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// Nothing of it, to begin with.
    pub(crate) fn share_of(&self, tenant: &TenantId) -> Share {
        Share { of: self.clone(), tenant: tenant.clone(), size: 0 }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Takes so much more. Says whether there was so much.
    pub(crate) fn grow(&mut self, by: usize) -> bool {
        let mut taken = self.of.taken();
        let own = taken.by_tenant.get(&self.tenant).copied().unwrap_or_default();
        let fits = taken.in_all + by <= self.of.most && own + by <= self.of.most / 4 * 3;
        if fits && by > 0 {
            taken.in_all += by;
            taken.by_tenant.insert(self.tenant.clone(), own + by);
            self.size += by;
        }
        fits
    }

    /// Gives all of it back.
    pub(crate) fn give_back(&mut self) {
        if self.size == 0 {
            return;
        }
        let mut taken = self.of.taken();
        taken.in_all -= self.size;
        let own = taken.by_tenant.get(&self.tenant).copied().unwrap_or_default();
        match own - self.size {
            0 => drop(taken.by_tenant.remove(&self.tenant)),
            left => drop(taken.by_tenant.insert(self.tenant.clone(), left)),
        }
        self.size = 0;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_gets_three_quarters_and_leaves_the_rest_to_others() {
        let shares = Shares::new(100);
        let [loud, quiet] = ["loud", "quiet"].map(|name| TenantId::new(name).unwrap());
        let (mut first, mut second) = (shares.share_of(&loud), shares.share_of(&loud));
        assert!(first.grow(60) && !second.grow(16) && second.grow(15));
        let mut others = shares.share_of(&quiet);
        assert!(!others.grow(26) && others.grow(25));
        drop(second);
        assert!(!others.grow(16) && others.grow(15));
        first.give_back();
        drop((first, others));
        assert!(shares.taken().by_tenant.is_empty(), "nothing is kept of who has nothing");
        assert_eq!(shares.taken().in_all, 0);
    }
}
