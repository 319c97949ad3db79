//! The store of a cluster: PostgreSQL.
//!
//! | to find | look in |
//! |---|---|
//! | how to open one, and what is refused | [`options`], `open.rs`, `connector.rs`, `schema.rs` |
//! | the way of a commit | `queue.rs` (fair, bounded) → `writer.rs` (what waits becomes one transaction) → `plan.rs` (guards, what to write) → `write.rs` (the statements) |
//! | bodies over 64 KB | `lane.rs` |
//! | reads | `reads.rs` |
//!
//! Connect in session mode only: prepared statements and the migration lock do not survive a pooler that
//! hands a session from one transaction to another.

pub mod options;

mod columns;
mod connector;
#[cfg(test)]
mod explain;
mod lane;
mod open;
mod plan;
mod queue;
mod reads;
mod rows;
mod schema;
mod write;
mod writer;

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use countersign_core::store::{
    Change, Delivery, DeliveryPage, DeliveryQuery, Due, Key, Kind, Loaded, Mailbox, MailboxKey, Outcome,
    PayloadId, Record, Store, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};

pub use open::OpenError;
pub use options::Options;

use crate::{lane::Lane, queue::Queue, reads::Reads};

/// A handle on the store. Dropping it ends its writers once what is queued is done.
#[derive(Debug)]
pub struct PostgresStore {
    queues: Vec<Arc<Queue>>,
    lane: Lane,
    reads: Reads,
}

impl PostgresStore {
    /// The same key always goes to the same writer, so that no two transactions of this handle meet on it.
    fn queue_for(&self, change: &Change) -> &Queue {
        let mut hasher = DefaultHasher::new();
        change.tenant.hash(&mut hasher);
        let first_key = change.guards.iter().find_map(countersign_core::store::Guard::key);
        first_key.or(change.puts.first().map(|put| &put.key)).hash(&mut hasher);
        let queues = self.queues.len() as u64;
        &self.queues[usize::try_from(hasher.finish() % queues).unwrap_or_default()]
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.queues.iter().for_each(|queue| queue.close());
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        self.reads.load(tenant, keys).await
    }

    async fn commit(&self, mut change: Change) -> Result<Outcome, StoreError> {
        let ahead = self.lane.write_ahead(&mut change).await?;
        let outcome = self.queue_for(&change).submit(change, ahead.clone()).await;
        match outcome {
            // What may have been committed is not touched.
            Ok(Outcome::Committed { .. }) | Err(StoreError::OutcomeUnknown) => {}
            _ => self.lane.discard(&ahead).await,
        }
        outcome
    }

    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.reads.payloads(tenant, ids).await
    }

    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError> {
        self.reads.deliveries(tenant, query).await
    }

    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        self.reads.deliveries_by_subject(tenant, subject).await
    }

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<u64>, StoreError> {
        self.reads.heads(mailboxes).await
    }

    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        self.reads.scan(tenant, kind, after, limit).await
    }

    async fn due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        self.reads.due(limit).await
    }

    async fn sweep_orphans(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.lane.sweep(before, limit).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.reads.now().await
    }
}
