//! A store that counts and times the calls to another.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{
    change::Change,
    delivery::{Delivery, DeliveryPage, DeliveryQuery, Mailbox, MailboxKey},
    error::StoreError,
    key::{Key, Kind, PayloadId},
    noted::NotedPage,
    port::{Due, InInboxes, Loaded, Outcome, Record, Store},
    shard::Shard,
};
use crate::metrics::{SPANS, StoreFailure, StoreMetrics, StoreOperation};

/// Forwards every call to `inner`.
pub struct MeteredStore {
    inner: Arc<dyn Store>,
    metrics: StoreMetrics,
}

impl MeteredStore {
    pub fn new(inner: Arc<dyn Store>, metrics: StoreMetrics) -> Self {
        Self { inner, metrics }
    }

    async fn measure<T>(
        &self,
        operation: StoreOperation,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.metrics.calls.at(operation).inc();
        let started = Instant::now();
        let span = tracing::trace_span!(target: SPANS, "store", otel.name = operation.as_str());
        let result = call.instrument(span).await;
        self.metrics.seconds.at(operation).observe(started.elapsed());
        if let Err(error) = &result {
            self.metrics.errors.at((operation, failure(error))).inc();
        }
        result
    }
}

fn failure(error: &StoreError) -> StoreFailure {
    match error {
        StoreError::Overloaded => StoreFailure::Overloaded,
        StoreError::OutcomeUnknown => StoreFailure::OutcomeUnknown,
        StoreError::Unavailable(_) | StoreError::Moved => StoreFailure::Unavailable,
        StoreError::Corrupt(_) => StoreFailure::Corrupt,
    }
}

#[async_trait]
impl Store for MeteredStore {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        let loaded = self.measure(StoreOperation::Load, self.inner.load(tenant, keys)).await?;
        self.metrics.time.answered(loaded.now);
        Ok(loaded)
    }

    async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        let outcome = self.measure(StoreOperation::Commit, self.inner.commit(change)).await;
        if let Ok(Outcome::Conflict { .. }) = outcome {
            self.metrics.conflicts.inc();
        }
        outcome
    }

    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.measure(StoreOperation::Payloads, self.inner.payloads(tenant, ids)).await
    }

    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError> {
        let page = self.measure(StoreOperation::Deliveries, self.inner.deliveries(tenant, query)).await?;
        self.metrics.time.answered(page.now);
        Ok(page)
    }

    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        let call = self.inner.deliveries_by_subject(tenant, subject);
        self.measure(StoreOperation::DeliveriesBySubject, call).await
    }

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<Option<u64>>, StoreError> {
        self.measure(StoreOperation::Heads, self.inner.heads(mailboxes)).await
    }

    async fn noted(&self, shard: Shard, since: Option<u64>) -> Result<NotedPage, StoreError> {
        let page = self.measure(StoreOperation::Noted, self.inner.noted(shard, since)).await?;
        self.metrics.time.answered(page.now);
        Ok(page)
    }

    async fn forget_noted(&self, shard: Shard, before: u64, limit: u32) -> Result<u64, StoreError> {
        self.measure(StoreOperation::ForgetNoted, self.inner.forget_noted(shard, before, limit)).await
    }

    async fn tenants(
        &self,
        shard: Shard,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        self.measure(StoreOperation::Tenants, self.inner.tenants(shard, after, limit)).await
    }

    async fn in_inboxes(&self, shard: Shard, limit: u32) -> Result<InInboxes, StoreError> {
        self.measure(StoreOperation::InInboxes, self.inner.in_inboxes(shard, limit)).await
    }

    async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        self.measure(StoreOperation::StoredBytes, self.inner.stored_bytes(tenant)).await
    }

    async fn erase(&self, tenant: &TenantId, limit: u32) -> Result<u64, StoreError> {
        self.measure(StoreOperation::Erase, self.inner.erase(tenant, limit)).await
    }

    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        self.measure(StoreOperation::Scan, self.inner.scan(tenant, kind, after, limit)).await
    }

    async fn claim_due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        let (due, now) = self.measure(StoreOperation::ClaimDue, self.inner.claim_due(limit)).await?;
        self.metrics.time.answered(now);
        Ok((due, now))
    }

    async fn sweep_orphans(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.measure(StoreOperation::SweepOrphans, self.inner.sweep_orphans(before, limit)).await
    }

    async fn sweep_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.measure(StoreOperation::SweepAudit, self.inner.sweep_audit(before, limit)).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let now = self.measure(StoreOperation::Now, self.inner.now()).await?;
        self.metrics.time.answered(now);
        Ok(now)
    }

    fn estimated_now(&self, tenant: &TenantId) -> Option<Timestamp> {
        self.inner.estimated_now(tenant)
    }

    fn timeline(&self) -> u64 {
        self.inner.timeline()
    }

    fn shard_count(&self) -> u16 {
        self.inner.shard_count()
    }

    fn shard_of(&self, tenant: &TenantId) -> Shard {
        self.inner.shard_of(tenant)
    }
}
