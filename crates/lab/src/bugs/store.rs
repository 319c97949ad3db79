//! A store with one of the bugs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use countersign_core::{
    model::channels::{Channels, Lease},
    store::{
        Change, Delivery, DeliveryPage, DeliveryQuery, Due, Guard, InInboxes, Key, Kind, Loaded, Mailbox,
        MailboxKey, NotedPage, Outcome, PayloadId, Record, Shard, Store, StoreError,
    },
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::sleep;

use super::bug::Bug;

/// The number of an enforcer's first channel where later ones get lower numbers.
const FIRST_CHANNEL: u64 = 1_000_000;

/// Every so many commits one takes longer than those after it.
const SLOW_COMMITS: u64 = 3;

/// How much longer it takes than the others.
const SLOW_COMMIT: Duration = Duration::from_millis(150);

/// What the nodes of one process remember for a bug.
#[derive(Debug, Default)]
pub(crate) struct BugState {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    tenants: BTreeSet<TenantId>,
    /// Deliveries whose commit is still under way although they have their numbers.
    unseen: BTreeMap<MailboxKey, BTreeSet<u64>>,
    commits: u64,
}

impl BugState {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }

    /// All tenants of clients but this one.
    fn others(&self, tenant: &TenantId) -> Vec<TenantId> {
        if Shard::of_nodes_tenant(tenant).is_some() {
            return Vec::new();
        }
        let mut known = self.known();
        known.tenants.insert(tenant.clone());
        known.tenants.iter().filter(|other| *other != tenant).cloned().collect()
    }
}

pub(super) struct BuggyStore {
    inner: Arc<dyn Store>,
    bug: Bug,
    state: Arc<BugState>,
}

impl BuggyStore {
    pub(super) fn new(inner: Arc<dyn Store>, bug: Bug, state: &Arc<BugState>) -> Self {
        Self { inner, bug, state: Arc::clone(state) }
    }

    /// The change as the store gets it.
    fn weakened(&self, mut change: Change) -> Change {
        match self.bug {
            Bug::VersionGuard => change
                .guards
                .retain(|guard| !matches!(guard, Guard::Version(key, _) if key.kind == Kind::Exchange)),
            Bug::ExpiryGuard => change.guards.retain(|guard| !matches!(guard, Guard::Before(_))),
            Bug::OldestChannel => {
                for guard in &mut change.guards {
                    if let Guard::Version(key, 0) = guard {
                        *guard = Guard::Absent(key.clone());
                    }
                }
            }
            _ => {}
        }
        change
    }

    /// What a commit will probably be answered with.
    async fn probable(&self, change: &Change) -> Result<Outcome, StoreError> {
        let keys: Vec<Key> = change.puts.iter().map(|put| put.key.clone()).collect();
        let Loaded { records, now } = self.inner.load(&change.tenant, &keys).await?;
        let versions = records.iter().map(|record| record.as_ref().map_or(1, |record| record.version + 1));
        let mailbox =
            |mailbox: &Mailbox| MailboxKey { tenant: change.tenant.clone(), mailbox: mailbox.clone() };
        let mailboxes: Vec<MailboxKey> =
            change.deliveries.iter().map(|delivery| mailbox(&delivery.mailbox)).collect();
        let heads = if mailboxes.is_empty() { Vec::new() } else { self.inner.heads(&mailboxes).await? };
        let numbers = heads.iter().map(|head| head.unwrap_or(0) + 1).collect();
        Ok(Outcome::Committed { now, numbers, versions: versions.collect() })
    }

    /// Compares what guards name, and commits nothing.
    async fn compare(&self, change: &Change) -> Result<Outcome, StoreError> {
        let keys: Vec<Key> = change.guards.iter().filter_map(Guard::key).cloned().collect();
        let Loaded { records, now } = self.inner.load(&change.tenant, &keys).await?;
        let version = |key: &Key| {
            let record = keys.iter().zip(&records).find(|(of, _)| *of == key).and_then(|(_, it)| it.as_ref());
            record.map_or(0, |record| record.version)
        };
        let passes = change.guards.iter().all(|guard| match guard {
            Guard::Absent(key) => version(key) == 0,
            Guard::Version(key, expected) | Guard::Seen(key, expected) => version(key) == *expected,
            Guard::Before(end) => now < *end,
            Guard::NotBefore(earliest) => now >= *earliest,
        });
        Ok(match passes {
            true => Outcome::Committed { now, numbers: Vec::new(), versions: Vec::new() },
            false => Outcome::Conflict { current: records, now },
        })
    }

    /// Commits, and lets nobody see some deliveries until later, although others have got higher numbers.
    async fn commit_in_sequence(&self, change: Change) -> Result<Outcome, StoreError> {
        let tenant = change.tenant.clone();
        let mailboxes: Vec<MailboxKey> = change
            .deliveries
            .iter()
            .map(|delivery| MailboxKey { tenant: tenant.clone(), mailbox: delivery.mailbox.clone() })
            .collect();
        let outcome = self.inner.commit(change).await?;
        let Outcome::Committed { numbers, .. } = &outcome else { return Ok(outcome) };
        let is_slow = {
            let mut known = self.state.known();
            known.commits += u64::from(!numbers.is_empty());
            let is_slow = !numbers.is_empty() && known.commits.is_multiple_of(SLOW_COMMITS);
            for (mailbox, number) in mailboxes.iter().zip(numbers).filter(|_| is_slow) {
                known.unseen.entry(mailbox.clone()).or_default().insert(*number);
            }
            is_slow
        };
        if is_slow {
            sleep(SLOW_COMMIT).await;
            for (mailbox, number) in mailboxes.iter().zip(numbers) {
                if let Some(unseen) = self.state.known().unseen.get_mut(mailbox) {
                    unseen.remove(number);
                }
            }
        }
        Ok(outcome)
    }

    /// A record as this node sees it.
    fn seen(&self, key: &Key, record: Option<Record>) -> Result<Option<Record>, StoreError> {
        let content =
            |value: Result<Vec<u8>, serde_json::Error>| value.map(Bytes::from).map_err(StoreError::corrupt);
        match (self.bug, key.kind, record) {
            (Bug::EndlessLease, Kind::Lease, Some(record)) => {
                let lease = Lease { until: Timestamp::from_unix_micros(i64::MAX / 4) };
                Ok(Some(Record { content: content(serde_json::to_vec(&lease))?, ..record }))
            }
            (Bug::OldestChannel, Kind::Channels, None) => {
                let none = Channels { last: FIRST_CHANNEL, open: Vec::new() };
                Ok(Some(Record {
                    key: key.clone(),
                    version: 0,
                    content: content(serde_json::to_vec(&none))?,
                }))
            }
            (Bug::OldestChannel, Kind::Channels, Some(record)) => {
                let mut channels: Channels =
                    serde_json::from_slice(&record.content).map_err(StoreError::corrupt)?;
                channels.last -= 2;
                Ok(Some(Record { content: content(serde_json::to_vec(&channels))?, ..record }))
            }
            (_, _, record) => Ok(record),
        }
    }
}

#[async_trait]
impl Store for BuggyStore {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        let mut loaded = self.inner.load(tenant, keys).await?;
        if self.bug == Bug::TenantFilter {
            for other in self.state.others(tenant) {
                let others = self.inner.load(&other, keys).await?.records;
                for (record, other) in loaded.records.iter_mut().zip(others) {
                    *record = record.take().or(other);
                }
            }
        }
        let seen = keys.iter().zip(loaded.records).map(|(key, record)| self.seen(key, record));
        Ok(Loaded { records: seen.collect::<Result<_, _>>()?, now: loaded.now })
    }

    async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        let change = self.weakened(change);
        let writes = !change.puts.is_empty() || !change.deletes.is_empty();
        let is_exchange = change.puts.iter().any(|put| put.key.kind == Kind::Exchange);
        match self.bug {
            Bug::EarlyAnswer if is_exchange => {
                let outcome = self.probable(&change).await?;
                let inner = Arc::clone(&self.inner);
                tokio::spawn(async move { inner.commit(change).await });
                Ok(outcome)
            }
            Bug::ReplayFromRead if !writes => self.compare(&change).await,
            Bug::UnknownAsDone => {
                let copy = change.clone();
                match self.inner.commit(change).await {
                    Err(StoreError::OutcomeUnknown) => self.probable(&copy).await,
                    outcome => outcome,
                }
            }
            Bug::SequenceNumbers => self.commit_in_sequence(change).await,
            _ => self.inner.commit(change).await,
        }
    }

    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let mut payloads = self.inner.payloads(tenant, ids).await?;
        if self.bug == Bug::TenantFilter {
            for other in self.state.others(tenant) {
                let others = self.inner.payloads(&other, ids).await?;
                for (payload, other) in payloads.iter_mut().zip(others) {
                    *payload = payload.take().or(other);
                }
            }
        }
        Ok(payloads)
    }

    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError> {
        let mailbox = MailboxKey { tenant: tenant.clone(), mailbox: query.mailbox.clone() };
        let mut page = self.inner.deliveries(tenant, query.clone()).await?;
        if self.bug == Bug::SequenceNumbers
            && let Some(unseen) = self.state.known().unseen.get(&mailbox)
        {
            page.deliveries.retain(|delivery| !unseen.contains(&delivery.number));
        }
        if self.bug == Bug::TenantFilter {
            for other in self.state.others(tenant) {
                let others = self.inner.deliveries(&other, query.clone()).await?;
                if page.deliveries.is_empty() {
                    page.deliveries = others.deliveries;
                }
            }
        }
        Ok(page)
    }

    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        self.inner.deliveries_by_subject(tenant, subject).await
    }

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<Option<u64>>, StoreError> {
        self.inner.heads(mailboxes).await
    }

    async fn noted(&self, shard: Shard, since: Option<u64>) -> Result<NotedPage, StoreError> {
        let mut page = self.inner.noted(shard, since).await?;
        if self.bug == Bug::RingOnly {
            page.changes.clear();
        }
        Ok(page)
    }

    async fn forget_noted(&self, shard: Shard, before: u64, limit: u32) -> Result<u64, StoreError> {
        self.inner.forget_noted(shard, before, limit).await
    }

    async fn tenants(
        &self,
        shard: Shard,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        self.inner.tenants(shard, after, limit).await
    }

    async fn in_inboxes(&self, shard: Shard, limit: u32) -> Result<InInboxes, StoreError> {
        self.inner.in_inboxes(shard, limit).await
    }

    async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        self.inner.stored_bytes(tenant).await
    }

    async fn erase(&self, tenant: &TenantId, limit: u32) -> Result<u64, StoreError> {
        self.inner.erase(tenant, limit).await
    }

    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        self.inner.scan(tenant, kind, after, limit).await
    }

    async fn claim_due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        self.inner.claim_due(limit).await
    }

    async fn sweep_orphans(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.inner.sweep_orphans(before, limit).await
    }

    async fn sweep_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.inner.sweep_audit(before, limit).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
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
