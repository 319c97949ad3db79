//! A store that records the changes committed through it, counts all calls, and whose reads can be made to fail.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use async_trait::async_trait;
use bytes::Bytes;
use countersign_core::store::{
    Change, Delivery, DeliveryPage, DeliveryQuery, Due, InInboxes, Key, Kind, Loaded, Mailbox, MailboxKey,
    NotedPage, Outcome, PayloadId, Record, Shard, Store, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use parking_lot::Mutex;

/// Forwards every call to `inner` and keeps a copy of each committed change.
pub struct RecordingStore {
    inner: Arc<dyn Store>,
    committed: Mutex<Vec<Change>>,
    loads_fail: AtomicBool,
    commits_conflict: AtomicBool,
    outcomes_unknown: AtomicBool,
    unreadable: Mutex<Option<TenantId>>,
    scans_left: AtomicU64,
    calls: AtomicU64,
    commits: AtomicU64,
    estimated_now: Mutex<Option<Timestamp>>,
    timeline: Mutex<Option<u64>>,
}

impl RecordingStore {
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            committed: Mutex::default(),
            loads_fail: AtomicBool::new(false),
            commits_conflict: AtomicBool::new(false),
            outcomes_unknown: AtomicBool::new(false),
            unreadable: Mutex::default(),
            scans_left: AtomicU64::new(u64::MAX),
            calls: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            estimated_now: Mutex::default(),
            timeline: Mutex::default(),
        })
    }

    /// Whether every load from now on fails, as with a store that is unavailable.
    pub fn set_loads_fail(&self, fail: bool) {
        self.loads_fail.store(fail, Ordering::SeqCst);
    }

    /// Whether every commit from now on is told that somebody else was first.
    pub fn set_commits_conflict(&self, conflict: bool) {
        self.commits_conflict.store(conflict, Ordering::SeqCst);
    }

    /// Whether every commit from now on is done, and nobody learns that it was.
    pub fn set_outcomes_unknown(&self, unknown: bool) {
        self.outcomes_unknown.store(unknown, Ordering::SeqCst);
    }

    /// The tenant whose loads fail from now on; `None` for no tenant.
    pub fn set_unreadable(&self, tenant: Option<TenantId>) {
        *self.unreadable.lock() = tenant;
    }

    /// Lets so many scans succeed from now on; every later one fails, as with a store that became unavailable.
    pub fn fail_scans_after(&self, count: u64) {
        self.scans_left.store(count, Ordering::SeqCst);
    }

    /// Commits that began, whatever became of them.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// The changes committed since the last call.
    pub fn take_committed(&self) -> Vec<Change> {
        std::mem::take(&mut self.committed.lock())
    }

    /// How often the store was called, for reads or writes.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How often the store was called for reads, that of its time included.
    pub fn reads(&self) -> u64 {
        self.calls() - self.commits.load(Ordering::Relaxed)
    }

    /// The time that the store seems to know without being asked; `None` for what it really knows.
    pub fn set_estimated_now(&self, now: Option<Timestamp>) {
        *self.estimated_now.lock() = now;
    }

    /// The history that the store seems to have from now on.
    pub fn set_timeline(&self, timeline: u64) {
        *self.timeline.lock() = Some(timeline);
    }

    fn counted(&self) -> &dyn Store {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.inner.as_ref()
    }
}

#[async_trait]
impl Store for RecordingStore {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        let unreadable = self.unreadable.lock().as_ref() == Some(tenant);
        if unreadable || self.loads_fail.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("the test says so"));
        }
        self.counted().load(tenant, keys).await
    }

    async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        if self.commits_conflict.load(Ordering::SeqCst) {
            let now = self.counted().now().await?;
            return Ok(Outcome::Conflict { current: Vec::new(), now });
        }
        let copy = change.clone();
        self.commits.fetch_add(1, Ordering::Relaxed);
        let outcome = self.counted().commit(change).await;
        if matches!(outcome, Ok(Outcome::Committed { .. })) {
            self.committed.lock().push(copy);
        }
        if self.outcomes_unknown.load(Ordering::SeqCst) {
            return Err(StoreError::OutcomeUnknown);
        }
        outcome
    }

    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.counted().payloads(tenant, ids).await
    }

    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError> {
        self.counted().deliveries(tenant, query).await
    }

    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        self.counted().deliveries_by_subject(tenant, subject).await
    }

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<Option<u64>>, StoreError> {
        self.counted().heads(mailboxes).await
    }

    async fn noted(&self, shard: Shard, since: Option<u64>) -> Result<NotedPage, StoreError> {
        if self.loads_fail.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("the test says so"));
        }
        self.counted().noted(shard, since).await
    }

    async fn forget_noted(&self, shard: Shard, before: u64, limit: u32) -> Result<u64, StoreError> {
        self.counted().forget_noted(shard, before, limit).await
    }

    async fn tenants(
        &self,
        shard: Shard,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        self.counted().tenants(shard, after, limit).await
    }

    async fn in_inboxes(&self, shard: Shard, limit: u32) -> Result<InInboxes, StoreError> {
        self.counted().in_inboxes(shard, limit).await
    }

    async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        self.counted().stored_bytes(tenant).await
    }

    async fn erase(&self, tenant: &TenantId, limit: u32) -> Result<u64, StoreError> {
        self.counted().erase(tenant, limit).await
    }

    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        let one_less = |left: u64| left.checked_sub(1);
        if self.scans_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_err() {
            // As a real store does, it fails a moment after it was asked.
            tokio::task::yield_now().await;
            return Err(StoreError::unavailable("the test says so"));
        }
        self.counted().scan(tenant, kind, after, limit).await
    }

    async fn claim_due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        self.counted().claim_due(limit).await
    }

    async fn sweep_orphans(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.counted().sweep_orphans(before, limit).await
    }

    async fn sweep_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.counted().sweep_audit(before, limit).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.counted().now().await
    }

    fn estimated_now(&self, tenant: &TenantId) -> Option<Timestamp> {
        self.estimated_now.lock().or_else(|| self.inner.estimated_now(tenant))
    }

    fn timeline(&self) -> u64 {
        self.timeline.lock().unwrap_or_else(|| self.inner.timeline())
    }

    fn shard_count(&self) -> u16 {
        self.inner.shard_count()
    }

    fn shard_of(&self, tenant: &TenantId) -> Shard {
        self.inner.shard_of(tenant)
    }
}
