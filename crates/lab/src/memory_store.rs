//! A store in memory, without durability: it leaves only the push path of the gateway to measure.
//!
//! It passes the suite of every store (`tests/memory_store.rs`). Nothing reads audit rows, so it keeps none.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use countersign_core::store::{
    CLAIM, Change, Delivery, DeliveryPage, DeliveryQuery, Due, Guard, InInboxes, Key, Kind, Loaded, Mailbox,
    MailboxKey, NOTED_CHUNK, Noted, NotedPage, Outcome, PAYLOAD_OVERHEAD, PayloadId, Put, Record, Shard,
    Store, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use parking_lot::Mutex;

use crate::memory_mailboxes::Mailboxes;

type Clock = dyn Fn() -> Timestamp + Send + Sync;

/// A handle on [`Data`], which is behind one lock.
pub(crate) struct MemoryStore {
    clock: Box<Clock>,
    data: Arc<Mutex<Data>>,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

#[derive(Debug, Default)]
pub(crate) struct Data {
    tenants: HashMap<TenantId, Tenant>,
    due: BTreeMap<(TenantId, Key), Timestamp>,
    noted: BTreeMap<u64, (Noted, u64)>,
    last_noted: u64,
}

impl Data {
    fn note(&mut self, changes: Vec<(Noted, u64)>) {
        for change in changes {
            self.last_noted += 1;
            self.noted.insert(self.last_noted, change);
        }
    }
}

#[derive(Debug, Default)]
struct Tenant {
    records: HashMap<Key, StoredRecord>,
    /// The highest version that a deleted record had. A new one starts above it.
    deleted_version: u64,
    payloads: HashMap<PayloadId, Bytes>,
    mailboxes: Mailboxes,
}

#[derive(Debug)]
struct StoredRecord {
    version: u64,
    content: Bytes,
}

impl MemoryStore {
    pub(crate) fn new(data: Arc<Mutex<Data>>, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { clock: Box::new(clock), data }
    }

    fn in_tenant<T: Default>(&self, tenant: &TenantId, read: impl FnOnce(&Tenant) -> T) -> T {
        self.data.lock().tenants.get(tenant).map(read).unwrap_or_default()
    }
}

impl Tenant {
    fn record(&self, key: &Key) -> Option<Record> {
        let StoredRecord { version, content } = self.records.get(key)?;
        Some(Record { key: key.clone(), version: *version, content: content.clone() })
    }

    /// The current records of the guards' keys, if one of the guards fails.
    fn failed_guards(&self, guards: &[Guard], now: Timestamp) -> Option<Vec<Option<Record>>> {
        let version = |key| self.records.get(key).map(|stored| stored.version);
        let all_pass = guards.iter().all(|guard| match guard {
            Guard::Absent(key) => version(key).is_none(),
            Guard::Version(key, expected) => version(key) == Some(*expected),
            Guard::Seen(key, expected) => version(key).unwrap_or(0) == *expected,
            Guard::Before(end) => now < *end,
            Guard::NotBefore(earliest) => now >= *earliest,
        });
        let current = || guards.iter().filter_map(Guard::key).map(|key| self.record(key)).collect();
        (!all_pass).then(current)
    }

    /// Deletes everything but the record of the tenant itself; says how much that was.
    fn erase(&mut self) -> usize {
        let before = self.records.len();
        self.records.retain(|key, _| key.kind == Kind::Tenant);
        let erased = before - self.records.len() + self.payloads.len() + self.mailboxes.count();
        self.payloads.clear();
        self.mailboxes = Mailboxes::default();
        erased
    }

    /// Returns the numbers of the deliveries and the versions of the puts.
    fn write(&mut self, change: Change, now: Timestamp) -> (Vec<u64>, Vec<u64>) {
        for key in &change.deletes {
            let deleted = self.records.remove(key).map_or(0, |stored| stored.version);
            self.deleted_version = self.deleted_version.max(deleted);
        }
        let put = |Put { key, content }: Put| {
            let before = self.records.get(&key).map_or(self.deleted_version, |stored| stored.version);
            self.records.insert(key, StoredRecord { version: before + 1, content });
            before + 1
        };
        let versions = change.puts.into_iter().map(put).collect();
        self.payloads.extend(change.payloads);
        for id in &change.drop_payloads {
            self.payloads.remove(id);
        }
        self.mailboxes.remove(change.removals);
        self.mailboxes.mark(change.marks);
        (self.mailboxes.deliver(change.deliveries, now), versions)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        let data = self.data.lock();
        let tenant = data.tenants.get(tenant);
        let records = keys.iter().map(|key| tenant.and_then(|tenant| tenant.record(key))).collect();
        Ok(Loaded { records, now: (self.clock)() })
    }

    async fn commit(&self, mut change: Change) -> Result<Outcome, StoreError> {
        let mut data = self.data.lock();
        let Data { tenants, due, .. } = &mut *data;
        let now = (self.clock)();
        let tenant = tenants.entry(change.tenant.clone()).or_default();
        if let Some(current) = tenant.failed_guards(&change.guards, now) {
            return Ok(Outcome::Conflict { current, now });
        }
        for key in std::mem::take(&mut change.no_longer_due) {
            due.remove(&(change.tenant.clone(), key));
        }
        for (at, key) in std::mem::take(&mut change.due) {
            due.insert((change.tenant.clone(), key), at);
        }
        let (of, removed) = (change.tenant.clone(), change.deletes.clone());
        let puts: Vec<Key> = change.puts.iter().map(|put| put.key.clone()).collect();
        let mailboxes: Vec<Mailbox> =
            change.deliveries.iter().map(|delivery| delivery.mailbox.clone()).collect();
        let (numbers, versions) = tenant.write(change, now);
        let record = |key: Key, version: u64| (Noted::Record(of.clone(), key), version);
        let mailbox = |mailbox| Noted::Mailbox(MailboxKey { tenant: of.clone(), mailbox });
        let deleted = removed.into_iter().map(|key| record(key, 0));
        let written =
            deleted.chain(puts.into_iter().zip(&versions).map(|(key, version)| record(key, *version)));
        let written = written.filter(|(of, _)| matches!(of, Noted::Record(_, key) if key.kind.is_noted()));
        let delivered = mailboxes.into_iter().zip(&numbers).map(|(of, number)| (mailbox(of), *number));
        let changes = written.chain(delivered).collect();
        data.note(changes);
        Ok(Outcome::Committed { now, numbers, versions })
    }

    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let data = self.data.lock();
        let tenant = data.tenants.get(tenant);
        Ok(ids.iter().map(|id| tenant.and_then(|tenant| tenant.payloads.get(id)).cloned()).collect())
    }

    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError> {
        let now = (self.clock)();
        let page = self.in_tenant(tenant, |tenant| Some(tenant.mailboxes.read(&query, now)));
        Ok(page.unwrap_or_else(|| DeliveryPage::new(&query, Vec::new(), None, 0, now)))
    }

    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        Ok(self.in_tenant(tenant, |tenant| tenant.mailboxes.by_subject(subject)))
    }

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<Option<u64>>, StoreError> {
        let head = |of: &MailboxKey| self.in_tenant(&of.tenant, |tenant| tenant.mailboxes.head(&of.mailbox));
        Ok(mailboxes.iter().map(head).map(Some).collect())
    }

    async fn noted(&self, _shard: Shard, since: Option<u64>) -> Result<NotedPage, StoreError> {
        let data = self.data.lock();
        let settled = data.last_noted + 1;
        let mut rest = data.noted.range(since.unwrap_or(settled)..);
        let changes = rest.by_ref().take(NOTED_CHUNK as usize).map(|(_, change)| change.clone()).collect();
        Ok(NotedPage { changes, more_from: rest.next().map(|(at, _)| *at), settled, now: (self.clock)() })
    }

    async fn forget_noted(&self, _shard: Shard, before: u64, limit: u32) -> Result<u64, StoreError> {
        let mut data = self.data.lock();
        let mut deleted = 0;
        while deleted < u64::from(limit)
            && data.noted.first_entry().is_some_and(|first| *first.key() < before)
        {
            data.noted.pop_first();
            deleted += 1;
        }
        Ok(deleted)
    }

    async fn tenants(
        &self,
        _shard: Shard,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        let data = self.data.lock();
        let wanted = |(of, tenant): &(&TenantId, &Tenant)| {
            !tenant.records.is_empty() && after.is_none_or(|after| *of > after)
        };
        let mut tenants: Vec<TenantId> =
            data.tenants.iter().filter(wanted).map(|(tenant, _)| tenant.clone()).collect();
        tenants.sort_unstable();
        tenants.truncate(limit as usize);
        Ok(tenants)
    }

    async fn in_inboxes(&self, _shard: Shard, limit: u32) -> Result<InInboxes, StoreError> {
        let data = self.data.lock();
        let all = data.tenants.iter().flat_map(|(tenant, of)| {
            of.mailboxes.in_inboxes().map(move |delivery| (tenant, &delivery.subject, delivery.at))
        });
        let looked_at: Vec<_> = all.take(limit as usize).collect();
        let records: HashSet<_> = looked_at.iter().map(|(tenant, subject, _)| (tenant, subject)).collect();
        let oldest = looked_at.iter().map(|(.., at)| *at).min();
        Ok(InInboxes { records: records.len() as u64, oldest })
    }

    async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let size = |payload: &Bytes| payload.len() as u64 + PAYLOAD_OVERHEAD;
        Ok(self.in_tenant(tenant, |tenant| tenant.payloads.values().map(size).sum()))
    }

    async fn erase(&self, tenant: &TenantId, _limit: u32) -> Result<u64, StoreError> {
        let mut data = self.data.lock();
        let due = data.due.len();
        data.due.retain(|(of, key), _| of != tenant || key.kind == Kind::Tenant);
        let ended = due - data.due.len();
        let Some(of) = data.tenants.get_mut(tenant) else { return Ok(ended as u64) };
        let erased = of.erase();
        Ok((ended + erased) as u64)
    }

    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        let wanted = |key: &&Key| key.kind == kind && after.is_none_or(|after| key.id.as_str() > after);
        Ok(self.in_tenant(tenant, |tenant| {
            let mut keys: Vec<&Key> = tenant.records.keys().filter(wanted).collect();
            keys.sort_unstable();
            keys.into_iter().take(limit as usize).filter_map(|key| tenant.record(key)).collect()
        }))
    }

    async fn claim_due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        let mut data = self.data.lock();
        let now = (self.clock)();
        let due = data.due.iter().filter(|(_, at)| **at <= now);
        let due = due.map(|((tenant, key), at)| Due { tenant: tenant.clone(), at: *at, key: key.clone() });
        let mut due: Vec<Due> = due.collect();
        due.sort_by_key(|due| due.at);
        // The first of every tenant before anybody's second.
        let mut earlier: HashMap<TenantId, usize> = HashMap::new();
        due.sort_by_cached_key(|due| {
            let count = earlier.entry(due.tenant.clone()).or_default();
            *count += 1;
            *count
        });
        due.truncate(limit as usize);
        due.sort_by_key(|due| due.at);
        for due in &due {
            data.due.insert((due.tenant.clone(), due.key.clone()), now.plus(CLAIM));
        }
        Ok((due, now))
    }

    /// There are no orphans: a payload is stored in the commit of its record.
    async fn sweep_orphans(&self, _before: Timestamp, _limit: u32) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// It keeps no audit log.
    async fn sweep_audit(&self, _before: Timestamp, _limit: u32) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok((self.clock)())
    }

    fn estimated_now(&self, _tenant: &TenantId) -> Option<Timestamp> {
        Some((self.clock)())
    }

    fn timeline(&self) -> u64 {
        0
    }

    fn shard_count(&self) -> u16 {
        1
    }

    fn shard_of(&self, _tenant: &TenantId) -> Shard {
        Shard(0)
    }
}
