//! How much all tenants together, and one alone, may hold.

/// How much of something may be held at a time, in bytes or pieces.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub of_all: usize,
    pub of_one_tenant: usize,
}

impl Bounds {
    pub const NONE: Self = Self { of_all: usize::MAX, of_one_tenant: usize::MAX };

    /// No tenant gets more than half.
    pub const fn half_each(of_all: usize) -> Self {
        Self { of_all, of_one_tenant: of_all / 2 }
    }

    /// Whether a tenant that holds `own` of the `held` may have so much more.
    pub(super) const fn admit(&self, held: usize, own: usize, more: usize) -> bool {
        held.saturating_add(more) <= self.of_all && own.saturating_add(more) <= self.of_one_tenant
    }
}
