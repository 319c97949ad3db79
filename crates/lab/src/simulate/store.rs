//! One node's way to the database: calls are late, refused, or have an unknown outcome.

use std::{
    future::pending,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use countersign_core::store::{
    Change, Delivery, DeliveryPage, DeliveryQuery, Due, InInboxes, Key, Kind, Loaded, Mailbox, MailboxKey,
    NotedPage, Outcome, PayloadId, Record, Shard, Store, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::Instant};

use super::{
    database::{Database, ready},
    nodes::{Liveness, NodeRun},
    plan::{MAX_LATE, StoreFaults},
    random::{Numbers, hash},
    world::World,
};
use crate::memory_store::MemoryStore;

/// What the store reported longer ago is not used to guess its time.
const MAX_REPORT_AGE: Duration = Duration::from_secs(10);

pub(crate) struct SimStore(Arc<Handle>);

struct Handle {
    world: Arc<World>,
    database: Arc<Database>,
    run: Arc<NodeRun>,
    faults: StoreFaults,
    timeline: AtomicU64,
    reported: Mutex<Option<(Timestamp, Instant)>>,
}

/// What happens to one call.
struct Verdict {
    /// When it reaches the database.
    reaches_at: u64,
    /// How long its answer takes.
    answer_takes: u64,
    fate: Fate,
    order: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Refused,
    /// The caller does not learn what became of its commit, which was applied, is applied later, or is not.
    Unknown {
        applied: bool,
        later: u64,
    },
}

impl SimStore {
    pub(crate) fn new(
        world: &Arc<World>,
        database: &Arc<Database>,
        run: &Arc<NodeRun>,
        faults: StoreFaults,
    ) -> Self {
        Self(Arc::new(Handle {
            world: Arc::clone(world),
            database: Arc::clone(database),
            run: Arc::clone(run),
            faults,
            timeline: AtomicU64::new(database.epoch()),
            reported: Mutex::default(),
        }))
    }

    /// Reads from the database: `read` runs when the call reaches it.
    async fn read<T: Send + 'static>(
        &self,
        name: &'static str,
        label: impl Hash,
        now_of: fn(&T) -> Option<Timestamp>,
        read: impl FnOnce(&MemoryStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let handle = &self.0;
        let verdict = handle.verdict((name, label), false).await;
        let (answer, answered) = oneshot::channel();
        let (epoch, at) = (handle.database.epoch(), Arc::clone(handle));
        handle.world.at(verdict.reaches_at, verdict.order, move || {
            let result = match at.reaches(epoch, verdict.fate) {
                true => read(at.database.primary()),
                false => Err(StoreError::unavailable("the simulation says so")),
            };
            let reached = at.database.epoch();
            let due = at.world.now() + verdict.answer_takes;
            let end = Arc::clone(&at);
            let finish = move || {
                let broken = result.is_ok() && end.database.epoch() != reached;
                let result =
                    if broken { Err(StoreError::unavailable("the connection broke")) } else { result };
                drop(answer.send(result));
            };
            at.answer(due, verdict.order, finish);
        });
        let Ok(result) = answered.await else { return pending().await };
        handle.learn(result.as_ref().ok().and_then(now_of));
        result
    }

    async fn write(&self, change: Change) -> Result<Outcome, StoreError> {
        let handle = &self.0;
        let verdict = handle.verdict(("commit", label_of(&change)), true).await;
        let (answer, answered) = oneshot::channel();
        let (epoch, at, what) = (handle.database.epoch(), Arc::clone(handle), describe(&change));
        let lag = handle.lag(verdict.order);
        handle.world.at(verdict.reaches_at, verdict.order, move || {
            let now = at.world.now();
            let (result, due) = match verdict.fate {
                _ if !at.reaches(epoch, Fate::Answered) => (Err(StoreError::OutcomeUnknown), now),
                Fate::Refused => (Err(StoreError::Overloaded), now),
                Fate::Unknown { applied, later } => {
                    at.world.count("unknown outcomes", 1);
                    at.apply_unknown(change, applied, later, lag, verdict.order);
                    (Err(StoreError::OutcomeUnknown), now)
                }
                Fate::Answered => {
                    let applied = at.database.commit(change, lag);
                    (applied.outcome, applied.answered_at)
                }
            };
            at.world
                .step(|| format!("{} commit {what}: {}, {:?}", at.run.name(), short(&result), verdict.fate));
            let reached = at.database.epoch();
            let end = Arc::clone(&at);
            let finish = move || {
                let broken = result.is_ok() && end.database.epoch() != reached;
                drop(answer.send(if broken { Err(StoreError::OutcomeUnknown) } else { result }));
            };
            at.answer(due.max(now + verdict.answer_takes), verdict.order, finish);
        });
        let Ok(result) = answered.await else { return pending().await };
        handle.learn(match &result {
            Ok(Outcome::Committed { now, .. } | Outcome::Conflict { now, .. }) => Some(*now),
            Err(_) => None,
        });
        result
    }
}

impl Handle {
    /// Decides what happens to a call. Returns never if the node is dead, and when it goes on if it is stopped.
    async fn verdict(&self, label: impl Hash, is_commit: bool) -> Verdict {
        let mut numbers = self.world.numbers((self.run.name(), label));
        let order = numbers.next();
        let sent_at = match self.run.liveness() {
            Liveness::Running => self.world.now(),
            Liveness::StoppedUntil(time) => time,
            Liveness::Dead => return pending().await,
        };
        let mut takes = || match self.has_faults() && numbers.happens(self.faults.late) {
            true => numbers.between(20, MAX_LATE),
            false => numbers.between(1, 3),
        };
        let (reaches_at, answer_takes) = (sent_at + takes(), takes());
        let fate = if self.has_faults() { self.fate(&mut numbers, is_commit) } else { Fate::Answered };
        Verdict { reaches_at, answer_takes, fate, order }
    }

    fn fate(&self, numbers: &mut Numbers, is_commit: bool) -> Fate {
        if numbers.happens(self.faults.refused) {
            return Fate::Refused;
        }
        if is_commit && numbers.happens(self.faults.unknown) {
            let later = if numbers.happens(200) { numbers.between(100, 6_000) } else { 0 };
            return Fate::Unknown { applied: numbers.happens(500), later };
        }
        Fate::Answered
    }

    fn has_faults(&self) -> bool {
        self.run.has_faults(self.world.now())
    }

    /// When the standby has a commit, in milliseconds from now.
    fn lag(&self, order: u64) -> u64 {
        let mut numbers = Numbers::of(self.world.seed, (order, "lag"));
        match self.has_faults() && numbers.happens(100) {
            true => numbers.below(self.faults.standby_late + 1),
            false => 0,
        }
    }

    /// Whether a call that was sent before the failover of `epoch` still reaches the database, and is not refused.
    fn reaches(&self, epoch: u64, fate: Fate) -> bool {
        let reaches = self.database.epoch() == epoch && !self.database.is_down();
        if reaches {
            // A connection learns of the history before it reads anything.
            self.timeline.store(epoch, Ordering::Release);
        }
        reaches && fate != Fate::Refused
    }

    /// Applies a commit whose caller does not learn of it, now or later.
    fn apply_unknown(self: &Arc<Self>, change: Change, applied: bool, later: u64, lag: u64, order: u64) {
        if !applied {
            return;
        }
        if later == 0 {
            drop(self.database.commit(change, lag));
            return;
        }
        let (epoch, at) = (self.database.epoch(), Arc::clone(self));
        self.world.at(self.world.now() + later, order, move || {
            if at.database.epoch() == epoch && !at.database.is_down() {
                let what = describe(&change);
                let applied = at.database.commit(change, lag);
                at.world.step(|| format!("late commit {what}: {}", short(&applied.outcome)));
            }
        });
    }

    /// Gives the answer to the node: when it goes on if it is stopped, and never if it is dead.
    fn answer(self: &Arc<Self>, due: u64, order: u64, finish: impl FnOnce() + Send + 'static) {
        let at = Arc::clone(self);
        self.world.at(due, order, move || match at.run.liveness() {
            Liveness::Running => finish(),
            Liveness::StoppedUntil(time) => at.answer(time, order, finish),
            Liveness::Dead => {}
        });
    }

    /// As a store does: a late report does not set the clock back.
    fn learn(&self, now: Option<Timestamp>) {
        let Some(now) = now else { return };
        if self.estimate().is_none_or(|estimate| estimate < now) {
            *self.reported.lock() = Some((now, Instant::now()));
        }
    }

    fn estimate(&self) -> Option<Timestamp> {
        let (reported, at) = (*self.reported.lock())?;
        let passed = at.elapsed();
        (passed < MAX_REPORT_AGE).then(|| reported.plus(passed))
    }
}

fn label_of(change: &Change) -> u64 {
    let keys: Vec<&Key> = change.puts.iter().map(|put| &put.key).chain(&change.deletes).collect();
    let guards: Vec<&Key> = change.guards.iter().filter_map(countersign_core::store::Guard::key).collect();
    let mailboxes: Vec<&Mailbox> = change.deliveries.iter().map(|delivery| &delivery.mailbox).collect();
    hash((&change.tenant, keys, guards, mailboxes))
}

fn describe(change: &Change) -> String {
    let puts: Vec<String> =
        change.puts.iter().map(|put| format!("{:?} {}", put.key.kind, &put.key.id)).collect();
    let deletes: Vec<&String> = change.deletes.iter().map(|key| &key.id).collect();
    format!("{} put {puts:?} delete {deletes:?} {} deliveries", change.tenant, change.deliveries.len())
}

fn short(result: &Result<Outcome, StoreError>) -> String {
    match result {
        Ok(Outcome::Committed { numbers, versions, .. }) => {
            format!("numbers {numbers:?} versions {versions:?}")
        }
        Ok(Outcome::Conflict { .. }) => "conflict".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[async_trait]
impl Store for SimStore {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        let (of, wanted) = (tenant.clone(), keys.to_vec());
        let now = |loaded: &Loaded| Some(loaded.now);
        self.read("load", (tenant, keys), now, move |store| ready(store.load(&of, &wanted))).await
    }

    async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        self.write(change).await
    }

    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let (of, ids) = (tenant.clone(), ids.to_vec());
        let label = (tenant, ids.clone());
        self.read("payloads", label, |_| None, move |store| ready(store.payloads(&of, &ids))).await
    }

    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError> {
        let of = tenant.clone();
        let reader = query.unless_marked.as_ref().map(|(reader, _)| reader.to_string());
        let label = hash((tenant, &query.mailbox, query.after, reader));
        let now = |page: &DeliveryPage| Some(page.now);
        self.read("deliveries", label, now, move |store| ready(store.deliveries(&of, query))).await
    }

    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        let (of, id) = (tenant.clone(), subject.to_owned());
        let read = move |store: &MemoryStore| ready(store.deliveries_by_subject(&of, &id));
        self.read("by subject", (tenant, subject), |_| None, read).await
    }

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<Option<u64>>, StoreError> {
        let wanted = mailboxes.to_vec();
        let mut sorted: Vec<&MailboxKey> = mailboxes.iter().collect();
        sorted.sort_unstable();
        self.read("heads", sorted, |_| None, move |store| ready(store.heads(&wanted))).await
    }

    async fn noted(&self, shard: Shard, since: Option<u64>) -> Result<NotedPage, StoreError> {
        let now = |page: &NotedPage| Some(page.now);
        self.read("noted", since, now, move |store| ready(store.noted(shard, since))).await
    }

    async fn forget_noted(&self, shard: Shard, before: u64, limit: u32) -> Result<u64, StoreError> {
        let read = move |store: &MemoryStore| ready(store.forget_noted(shard, before, limit));
        self.read("forget noted", before, |_| None, read).await
    }

    async fn tenants(
        &self,
        shard: Shard,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        let from = after.cloned();
        let read = move |store: &MemoryStore| ready(store.tenants(shard, from.as_ref(), limit));
        self.read("tenants", after, |_| None, read).await
    }

    async fn in_inboxes(&self, shard: Shard, limit: u32) -> Result<InInboxes, StoreError> {
        let read = move |store: &MemoryStore| ready(store.in_inboxes(shard, limit));
        self.read("in inboxes", limit, |_| None, read).await
    }

    async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let of = tenant.clone();
        self.read("stored bytes", tenant, |_| None, move |store| ready(store.stored_bytes(&of))).await
    }

    async fn erase(&self, tenant: &TenantId, limit: u32) -> Result<u64, StoreError> {
        let of = tenant.clone();
        self.read("erase", tenant, |_| None, move |store| ready(store.erase(&of, limit))).await
    }

    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        let (of, from) = (tenant.clone(), after.map(str::to_owned));
        let read = move |store: &MemoryStore| ready(store.scan(&of, kind, from.as_deref(), limit));
        self.read("scan", (tenant, kind), |_| None, read).await
    }

    async fn claim_due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        let now = |claimed: &(Vec<Due>, Timestamp)| Some(claimed.1);
        self.read("claim", (), now, move |store| ready(store.claim_due(limit))).await
    }

    /// The store in memory has no orphans, so the call need not travel.
    async fn sweep_orphans(&self, _before: Timestamp, _limit: u32) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// The store in memory has no audit log, so the call need not travel.
    async fn sweep_audit(&self, _before: Timestamp, _limit: u32) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.read("now", (), |now| Some(*now), |store| ready(store.now())).await
    }

    fn estimated_now(&self, _tenant: &TenantId) -> Option<Timestamp> {
        self.0.estimate()
    }

    fn timeline(&self) -> u64 {
        self.0.timeline.load(Ordering::Acquire)
    }

    fn shard_count(&self) -> u16 {
        1
    }

    fn shard_of(&self, _tenant: &TenantId) -> Shard {
        Shard(0)
    }
}
