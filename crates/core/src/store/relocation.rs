//! Tenants that move from one shard to another. Each shard knows for itself which tenants are on it; nobody else does.

use async_trait::async_trait;
use countersign_wire::id::TenantId;

use super::{
    change::Change,
    error::StoreError,
    port::{Outcome, Store},
    shard::Shard,
};

/// How often a tenant has been moved. One that never was has zero, and no shard has a [`Residence`] of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub u64);

impl Epoch {
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// What a shard knows of a tenant that was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residence {
    pub epoch: Epoch,
    pub state: ResidenceState,
}

/// In the order of a move: the tenant leaves one shard while it arrives on the other, is here there, and has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResidenceState {
    /// The only state with which a change is committed, and only one with the same epoch.
    Here,
    /// All of it is still here, and nobody writes to it.
    Leaving { to: Shard },
    /// Some of it is here.
    Arriving { from: Shard },
    /// What is left of it is deleted.
    Left { to: Shard },
}

/// Everything that was changed of the residences on a shard. One that can't be read is there as leaving, so that its tenant
/// alone can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResidencePage {
    pub changes: Vec<(TenantId, Residence)>,
    /// Where the next read starts: each change is numbered, in the order of the commits.
    pub read_to: u64,
}

/// A part of a tenant on its way. Only the kind of store that wrote it can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cargo {
    /// One for each row.
    pub rows: u64,
    /// Of `content`, which is larger than the rows are in the database.
    pub size: u64,
    pub content: String,
    /// Where the next part begins.
    pub next: CargoPosition,
}

/// Reads a tenant part by part.
#[async_trait]
pub trait Unloading: Send {
    /// `None` after the last part.
    async fn next(&mut self) -> Result<Option<Cargo>, StoreError>;
}

/// How much of a tenant has arrived. Starts as [`CargoPosition::default`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CargoPosition(pub String);

/// What a shard is within a store of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The same on all shards of one store, and on no other.
    pub store_id: String,
    pub shard: Shard,
    /// What operators call it.
    pub name: String,
    /// The shard of each bucket; the same on all of them.
    pub buckets: Vec<u16>,
}

// CONTRIBUTING: add a store, step 3
/// A store that can be one of several shards, between which tenants move.
///
/// A tenant can be written to on one shard at a time. Its residence is compared with the epoch of whoever writes in the
/// transaction of each change, and every method here that changes a residence waits for the transactions that have compared
/// it before. So each of these methods may be called again after a crash, by several movers at once, and late.
#[async_trait]
pub trait Relocation: Store {
    /// What this store is a shard of; `None` if it is a store of its own.
    async fn membership(&self) -> Result<Option<Membership>, StoreError>;

    /// Becomes a shard, unless it is one already. Returns what it is. Programs that know nothing of shards can't open it any
    /// more.
    async fn join(&self, membership: &Membership) -> Result<Membership, StoreError>;

    /// As [`Store::commit`], if the tenant is here with this epoch; otherwise [`StoreError::Moved`], and nothing is written.
    async fn commit_in(&self, epoch: Epoch, change: Change) -> Result<Outcome, StoreError>;

    /// The residences that have changed since `since`, from zero.
    async fn residences(&self, since: u64) -> Result<ResidencePage, StoreError>;

    /// `None` for a tenant that was never moved to or from here.
    async fn residence(&self, tenant: &TenantId) -> Result<Option<Residence>, StoreError>;

    /// Changes the residence from `from` to `to`, whose epoch must not be less. Returns the one that it has then, which is
    /// another than `to` if it was not `from`. When it returns, no change that was compared with `from` is in progress.
    async fn change_residence(
        &self,
        tenant: &TenantId,
        from: Option<Residence>,
        to: Residence,
    ) -> Result<Option<Residence>, StoreError>;

    /// Starts to read all of a tenant that is leaving, from this position on.
    async fn unload(&self, tenant: &TenantId, from: CargoPosition) -> Result<Box<dyn Unloading>, StoreError>;

    /// Up to where the tenant has arrived with this epoch.
    async fn arrived(&self, tenant: &TenantId, epoch: Epoch) -> Result<CargoPosition, StoreError>;

    /// Adds a part to a tenant that is arriving with this epoch and has arrived up to `after`. [`StoreError::Moved`] if it is
    /// not, or has not.
    async fn load_cargo(
        &self,
        tenant: &TenantId,
        epoch: Epoch,
        after: &CargoPosition,
        cargo: &Cargo,
    ) -> Result<(), StoreError>;

    /// What versions of new records on this shard are above.
    async fn version_floor(&self) -> Result<u64, StoreError>;

    /// No version of a new record on this shard is below this from now on.
    async fn raise_version_floor(&self, floor: u64) -> Result<(), StoreError>;

    /// Deletes up to `limit` rows of a tenant from each table, of all kinds; says how many. Zero means that nothing of it is
    /// left. [`StoreError::Moved`] unless it has this residence, and if that is of a tenant that arrives, unless nothing has.
    async fn clear(&self, tenant: &TenantId, residence: Residence, limit: u32) -> Result<u64, StoreError>;
}
