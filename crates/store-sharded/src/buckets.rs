//! Which shard a tenant is on as long as nobody has moved it: its name decides for a bucket, and a bucket stays where it is.

use countersign_core::store::Shard;
use countersign_wire::{hash::Sha256Hex, id::TenantId};

/// Fixed for ever, because it decides where tenants are.
pub(crate) const BUCKETS: usize = 256;

/// The shard of each bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Buckets(Vec<u16>);

impl Buckets {
    /// As many for each shard.
    pub(crate) fn spread_over(shards: u16) -> Self {
        Self((0..shards).cycle().take(BUCKETS).collect())
    }

    /// All of them where tenants are already.
    pub(crate) fn on_the_first() -> Self {
        Self(vec![0; BUCKETS])
    }

    /// `None` if it can't be what [`Buckets::numbers`] has returned.
    pub(crate) fn of_numbers(numbers: Vec<u16>) -> Option<Self> {
        (numbers.len() == BUCKETS).then_some(Self(numbers))
    }

    pub(crate) fn numbers(&self) -> &[u16] {
        &self.0
    }

    /// By a byte of SHA-256, which spreads names that differ by a digit too.
    pub(crate) fn home(&self, tenant: &TenantId) -> Shard {
        let bucket = usize::from(Sha256Hex::digest(tenant.as_str().as_bytes()).as_bytes()[0]);
        Shard(self.0.get(bucket).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_at_home_where_it_was_with_the_first_program() {
        let buckets = Buckets::spread_over(3);
        let homes =
            ["acme", "globex", "initech", "umbrella"].map(|name| buckets.home(&name.parse().unwrap()).0);
        assert_eq!(homes, [1, 1, 1, 2]);
        let four = Buckets::spread_over(4);
        let count = |shard| {
            (0..4_000).filter(|n| four.home(&format!("t-{n}").parse().unwrap()) == Shard(shard)).count()
        };
        for shard in 0..4 {
            assert!((800..1_200).contains(&count(shard)), "shard {shard} has {}", count(shard));
        }
    }

    #[test]
    fn what_is_no_list_of_all_buckets_is_refused() {
        assert_eq!(Buckets::of_numbers(vec![0; BUCKETS - 1]), None);
        assert_eq!(Buckets::of_numbers(vec![0; BUCKETS]), Some(Buckets::on_the_first()));
    }
}
