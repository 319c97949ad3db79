//! The port itself: what every store can do.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use countersign_wire::{id::TenantId, timestamp::Timestamp};

use super::{
    change::Change,
    delivery::{Delivery, DeliveryPage, DeliveryQuery, Mailbox, MailboxKey},
    error::StoreError,
    key::{Key, Kind, PayloadId},
    noted::NotedPage,
    shard::Shard,
};

/// How long something that is due belongs to whoever has claimed it. A claim only saves work: the guards of a change
/// decide, also where a claim has lapsed.
pub const CLAIM: Duration = Duration::from_secs(30);

/// What a payload counts for beside its own size, in bytes: the rows about it.
pub const PAYLOAD_OVERHEAD: u64 = 1_024;

// CONTRIBUTING: add a store, step 1
/// Keeps records, payloads and deliveries, durably and in order. See [`Change`] for what a commit is.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The records behind `keys`, in their order, and the store's time.
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError>;

    /// Makes all of `change` durable, or none of it. The caller may wait for as long as the store does:
    /// dropping the future does not take a commit back.
    async fn commit(&self, change: Change) -> Result<Outcome, StoreError>;

    /// The payloads behind `ids`, in their order.
    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError>;

    /// Deliveries of one mailbox, ascending by number, and the store's time.
    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError>;

    /// Every delivery whose subject has this id, whatever its kind, in any order.
    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError>;

    /// The newest number of each mailbox, in their order; zero where there has been no delivery, and `None` where the
    /// database of a mailbox did not answer. Fails only if nothing was read.
    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<Option<u64>>, StoreError>;

    /// What commits on this shard have changed from the position `since` on, of all tenants: every delivery, and every record
    /// whose [`Kind::is_noted`]. `None` for the position alone.
    async fn noted(&self, shard: Shard, since: Option<u64>) -> Result<NotedPage, StoreError>;

    /// Deletes up to `limit` of what was noted before this position; says how many.
    async fn forget_noted(&self, shard: Shard, before: u64, limit: u32) -> Result<u64, StoreError>;

    /// Tenants of this shard that have any record, in the order of their ids, after the id `after`.
    async fn tenants(
        &self,
        shard: Shard,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError>;

    /// What lies in the inboxes of this shard ([`Mailbox::is_inbox`]), of all tenants. Looks at `limit` deliveries at most.
    async fn in_inboxes(&self, shard: Shard, limit: u32) -> Result<InInboxes, StoreError>;

    /// What the payloads of a tenant take, in bytes, each with [`PAYLOAD_OVERHEAD`]. It is counted in the transactions that
    /// write and delete them.
    async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, StoreError>;

    /// Deletes up to `limit` rows of a tenant from each table, except the record of [`Kind::Tenant`]; says how many. Zero
    /// means that nothing else of it is left.
    async fn erase(&self, tenant: &TenantId, limit: u32) -> Result<u64, StoreError>;

    /// Records of one kind in the order of their ids, after the id `after`.
    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError>;

    /// Claims up to `limit` of what is due now, the longest due first, and says the store's time. Tenants take turns: one
    /// with much that is due gets what the others leave of the limit.
    ///
    /// A claim makes it due again [`CLAIM`] later, so that nobody else claims it until then, and it comes back if whoever
    /// claimed it fails. It need not survive a crash. A store of several databases returns what it could claim in
    /// time, and the earliest of their times; it fails only if none of them answered.
    async fn claim_due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError>;

    /// Removes payloads older than `before` that no record was ever committed for; says how many. A store of several
    /// databases removes what it can, and fails only if none of them answered.
    async fn sweep_orphans(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// Deletes rows of the audit log from before this time, up to `limit` of those that go one by one; says how many these
    /// were. A store may delete a month at a time, and keep rows until all of their month is older. As with orphans, it
    /// fails only if no database answered.
    async fn sweep_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// The store's time, which is the only clock that decides anything. Of several databases the earliest that answers;
    /// what is about one tenant rests on the time that comes with its records.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// The store's time for this tenant as far as this handle knows it without asking: the last that the store reported,
    /// plus what has passed since by a monotonic clock. `None` if the store has not reported any for some seconds.
    fn estimated_now(&self, tenant: &TenantId) -> Option<Timestamp>;

    /// Names the history that this handle last wrote to. Another one, after a failover or a restore, may lack what was
    /// read before: whatever was remembered of the store is forgotten then. Does not ask the store. Of several databases
    /// it is one number that changes with each of theirs.
    fn timeline(&self) -> u64;

    /// How many databases the tenants are spread over, numbered from zero; at least one.
    fn shard_count(&self) -> u16;

    /// The database with everything of this tenant. See [`Shard::of_nodes_tenant`] for those whose shard is in their name.
    fn shard_of(&self, tenant: &TenantId) -> Shard;
}

/// The records that [`Store::load`] read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// One for each key that was asked for; `None` where there is no such record.
    pub records: Vec<Option<Record>>,
    /// The store's time of the read.
    pub now: Timestamp,
}

impl Loaded {
    /// The record behind the first key.
    pub fn first(&self) -> Option<&Record> {
        self.records.first().and_then(Option::as_ref)
    }
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub key: Key,
    /// Never zero; one more with every write. A record that is made again after it was deleted starts with a version that
    /// it never had.
    pub version: u64,
    /// Opaque to the store.
    pub content: Bytes,
}

/// What [`Store::in_inboxes`] has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InInboxes {
    /// The records that deliveries in inboxes are about; one in several inboxes counts once.
    pub records: u64,
    /// When the oldest of these deliveries was committed; `None` without any.
    pub oldest: Option<Timestamp>,
}

/// A record whose due time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub tenant: TenantId,
    /// Since when it is due; after a claim that lapsed, since then.
    pub at: Timestamp,
    pub key: Key,
}

/// What became of a [`Change`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All of it is durable.
    Committed {
        /// The store's time of the commit.
        now: Timestamp,
        /// The numbers of its deliveries, in their order.
        numbers: Vec<u64>,
        /// The versions of the records that it put, in their order.
        versions: Vec<u64>,
    },
    /// A guard did not hold, and nothing was written. What the guards met is durable too.
    Conflict {
        /// The record behind each key that a guard names, in the order of the guards.
        current: Vec<Option<Record>>,
        now: Timestamp,
    },
}
