//! The port to whatever keeps the truth.
//!
//! A store knows nothing of what it keeps: it has *records* (a key, a version, some bytes), *payloads*
//! (bytes by id, written once), *mailboxes* of numbered *deliveries*, and a list of what is *due*. All
//! meaning is in this crate, so that two stores can't come to mean two things.

mod change;
mod delivery;
mod key;

use async_trait::async_trait;
use bytes::Bytes;
use countersign_wire::{id::TenantId, timestamp::Timestamp};

pub use change::{AuditRow, Change, Guard, Mark, Put, Removal};
pub use delivery::{Delivery, DeliveryQuery, Mailbox, MailboxKey, MarkKind, NewDelivery, Unread};
pub use key::{Key, Kind, PayloadId};

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
    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<Unread, StoreError>;

    /// Every delivery that tells of the record or records named `subject`, whatever their kind, in any order.
    async fn deliveries_about(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError>;

    /// The newest number of each mailbox, in their order; zero where there has been no delivery.
    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<u64>, StoreError>;

    /// Records of one kind in the order of their ids, after the id `after`.
    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError>;

    /// What is due now in any tenant, the longest due first, and the store's time.
    async fn due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError>;

    /// Removes payloads older than `before` that no record was ever committed for; says how many.
    async fn sweep_orphans(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;

    /// The store's time.
    async fn now(&self) -> Result<Timestamp, StoreError>;
}

/// What [`Store::load`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// One for each key.
    pub records: Vec<Option<Record>>,
    /// The store's time when it looked.
    pub now: Timestamp,
}

impl Loaded {
    /// What was behind the first key.
    pub fn first(&self) -> Option<&Record> {
        self.records.first().and_then(Option::as_ref)
    }
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its key.
    pub key: Key,
    /// One when it is new, one more with every write.
    pub version: u64,
    /// Its content, which the store does not look into.
    pub content: Bytes,
}

/// A record that wants to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Whose it is.
    pub tenant: TenantId,
    /// Since when.
    pub at: Timestamp,
    /// Which one.
    pub key: Key,
}

/// What became of a [`Change`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable.
    Committed {
        /// The store's time of the commit.
        now: Timestamp,
        /// The numbers of its deliveries, in their order.
        numbers: Vec<u64>,
    },
    /// A guard did not hold, and nothing was written. What it met is durable too.
    Lost {
        /// The record behind each key that a guard names, in the order of the guards.
        current: Vec<Option<Record>>,
        /// The store's time.
        now: Timestamp,
    },
}

/// Why a store could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It has more to do than it can, or waited too long for its turn; nothing was written.
    #[error("the store has more to do than it can")]
    Overloaded,
    /// The commit may or may not have happened. Never to be taken for success.
    #[error("the outcome of a commit is unknown")]
    OutcomeUnknown,
    /// It can't be reached, or refuses; nothing was written.
    #[error("the store is away: {0}")]
    Unavailable(String),
    /// What it holds is not what was put there.
    #[error("the store holds something unreadable: {0}")]
    Corrupt(String),
}
