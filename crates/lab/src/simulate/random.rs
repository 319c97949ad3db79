//! Numbers that depend on the seed alone.

use std::hash::{DefaultHasher, Hash, Hasher as _};

/// A generator of numbers, `SplitMix64`. Each task has its own, so that no number depends on which task ran first.
#[derive(Debug, Clone)]
pub(crate) struct Numbers(u64);

impl Numbers {
    /// For what `label` names in the run of this seed.
    pub(crate) fn of(seed: u64, label: impl Hash) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ hash(label))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From zero to `end`, without it.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// From `first` to `last`, both included.
    pub(crate) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }

    /// True in so many of a thousand cases.
    pub(crate) fn happens(&mut self, permille: u64) -> bool {
        self.below(1_000) < permille
    }
}

/// The same in every process.
pub(crate) fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
