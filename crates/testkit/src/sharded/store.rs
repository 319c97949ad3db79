//! The store itself: what is about one tenant goes to its shard, the rest to all of them at once.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use countersign_core::store::{
    Change, Delivery, DeliveryPage, DeliveryQuery, Due, Key, Kind, Loaded, Mailbox, MailboxKey, NotedPage,
    Outcome, PayloadId, Record, Shard, Store, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use parking_lot::Mutex;
use tokio::{task::JoinSet, time::timeout};

/// What is about all shards is answered without those that take longer. One that works may be slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same for a shard that hangs, which would take all of it each time.
const PATIENCE_WITH_HANGING: Duration = Duration::from_millis(500);

/// What a shard does instead of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Every call fails at once, as with a server that refuses connections.
    Fails,
    /// No call ends, as with a network that drops packets.
    Hangs,
    /// Only what is about all shards is answered, as with a network that starts to drop packets after a claim.
    HangsAfterClaims,
}

/// Spreads tenants over several stores by a hash of their names.
pub struct ShardedStore {
    shards: Vec<OneShard>,
    /// The shard whose turn it is to get what a division of a limit leaves over.
    turn: AtomicUsize,
}

#[derive(Clone)]
struct OneShard {
    store: Arc<dyn Store>,
    fault: Arc<Mutex<Option<Fault>>>,
}

impl OneShard {
    /// The result of a call about one tenant, unless the shard has a fault.
    async fn call<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        match self.fault() {
            None => call.await,
            Some(Fault::Fails) => Err(StoreError::unavailable("the test says so")),
            Some(Fault::Hangs | Fault::HangsAfterClaims) => pending().await,
        }
    }

    /// The result of a call about all shards, unless this one has a fault that keeps it from answering.
    async fn call_of_all<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match self.fault() {
            Some(Fault::HangsAfterClaims) => call.await,
            _ => self.call(call).await,
        }
    }

    /// How long what is about all shards waits for this one.
    fn patience(&self) -> Duration {
        if self.fault() == Some(Fault::Hangs) { PATIENCE_WITH_HANGING } else { PATIENCE }
    }

    fn fault(&self) -> Option<Fault> {
        *self.fault.lock()
    }
}

impl ShardedStore {
    /// # Panics
    ///
    /// Without a store.
    pub fn new(stores: Vec<Arc<dyn Store>>) -> Arc<Self> {
        assert!(!stores.is_empty(), "at least one shard");
        let shard = |store| OneShard { store, fault: Arc::default() };
        Arc::new(Self { shards: stores.into_iter().map(shard).collect(), turn: AtomicUsize::new(0) })
    }

    /// What a shard does from now on; `None` to answer again.
    pub fn set_fault(&self, shard: Shard, fault: Option<Fault>) {
        *self.shards[usize::from(shard.0)].fault.lock() = fault;
    }

    /// A tenant that is on this shard, another one for every `number`.
    ///
    /// # Panics
    ///
    /// If there is no such shard.
    pub fn tenant_on(&self, shard: Shard, number: usize) -> TenantId {
        let names = (0..10_000).map(|name| format!("tenant-{name}").parse().unwrap());
        names.filter(|tenant| self.shard_of(tenant) == shard).nth(number).expect("such a shard")
    }

    fn of(&self, tenant: &TenantId) -> &OneShard {
        &self.shards[usize::from(self.shard_of(tenant).0)]
    }

    /// Makes these calls at once, and returns what was answered in time, by shard. An error if nothing was.
    async fn on_shards<T, F>(
        &self,
        calls: impl IntoIterator<Item = (usize, F)>,
    ) -> Result<Vec<(usize, T)>, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let mut running = JoinSet::new();
        for (at, call) in calls {
            let shard = self.shards[at].clone();
            running.spawn(async move {
                let late = |_| Err(StoreError::unavailable("a shard did not answer in time"));
                (at, timeout(shard.patience(), shard.call_of_all(call)).await.unwrap_or_else(late))
            });
        }
        let (mut answers, mut failed) = (Vec::new(), None);
        for (at, answer) in running.join_all().await {
            match answer {
                Ok(answer) => answers.push((at, answer)),
                Err(error) => failed = Some(error),
            }
        }
        answers.sort_by_key(|(at, _)| *at);
        match failed {
            Some(error) if answers.is_empty() => Err(error),
            _ => Ok(answers),
        }
    }

    /// Claims from each shard as many as `limits` says.
    async fn claim(&self, limits: &[(usize, u32)]) -> Result<Vec<(usize, Claimed)>, StoreError> {
        let calls = limits.iter().map(|(at, limit)| {
            let (store, limit) = (Arc::clone(&self.shards[*at].store), *limit);
            (*at, async move { store.claim_due(limit).await })
        });
        self.on_shards(calls).await
    }
}

type Claimed = (Vec<Due>, Timestamp);

#[async_trait]
impl Store for ShardedStore {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        let shard = self.of(tenant);
        shard.call(shard.store.load(tenant, keys)).await
    }

    async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        let shard = self.of(&change.tenant);
        shard.call(shard.store.commit(change)).await
    }

    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let shard = self.of(tenant);
        shard.call(shard.store.payloads(tenant, ids)).await
    }

    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError> {
        let shard = self.of(tenant);
        shard.call(shard.store.deliveries(tenant, query)).await
    }

    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        let shard = self.of(tenant);
        shard.call(shard.store.deliveries_by_subject(tenant, subject)).await
    }

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<Option<u64>>, StoreError> {
        let mut by_shard: Vec<(Vec<usize>, Vec<MailboxKey>)> = vec![Default::default(); self.shards.len()];
        for (position, mailbox) in mailboxes.iter().enumerate() {
            let (positions, of_shard) = &mut by_shard[usize::from(self.shard_of(&mailbox.tenant).0)];
            positions.push(position);
            of_shard.push(mailbox.clone());
        }
        let calls = by_shard.into_iter().enumerate().filter(|(_, (_, of_shard))| !of_shard.is_empty()).map(
            |(at, (positions, of_shard))| {
                let store = Arc::clone(&self.shards[at].store);
                (at, async move { Ok((positions, store.heads(&of_shard).await?)) })
            },
        );
        let mut heads = vec![None; mailboxes.len()];
        for (_, (positions, of_shard)) in self.on_shards(calls).await? {
            for (position, head) in positions.into_iter().zip(of_shard) {
                heads[position] = head;
            }
        }
        Ok(heads)
    }

    async fn noted(&self, shard: Shard, since: Option<u64>) -> Result<NotedPage, StoreError> {
        let at = usize::from(shard.0);
        let store = Arc::clone(&self.shards[at].store);
        let mut pages = self.on_shards([(at, async move { store.noted(Shard(0), since).await })]).await?;
        pages.pop().map(|(_, page)| page).ok_or_else(|| StoreError::unavailable("no shard answered"))
    }

    async fn forget_noted(&self, shard: Shard, before: u64, limit: u32) -> Result<u64, StoreError> {
        let shard = &self.shards[usize::from(shard.0)];
        shard.call(shard.store.forget_noted(Shard(0), before, limit)).await
    }

    async fn tenants(
        &self,
        shard: Shard,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        let shard = &self.shards[usize::from(shard.0)];
        shard.call(shard.store.tenants(Shard(0), after, limit)).await
    }

    async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let shard = self.of(tenant);
        shard.call(shard.store.stored_bytes(tenant)).await
    }

    async fn erase(&self, tenant: &TenantId, limit: u32) -> Result<u64, StoreError> {
        let shard = self.of(tenant);
        shard.call(shard.store.erase(tenant, limit)).await
    }

    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        let shard = self.of(tenant);
        shard.call(shard.store.scan(tenant, kind, after, limit)).await
    }

    /// An equal share from each shard first, and then the rest from those that may have more: what is claimed must be
    /// returned, so none is asked for more than fits.
    async fn claim_due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        let count = self.shards.len();
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let (share, left) = (limit / u32::from(self.shard_count()), limit as usize % count);
        let shares: Vec<(usize, u32)> =
            (0..count).map(|at| ((first + at) % count, share + u32::from(at < left))).collect();
        let (mut all, mut times) = (Vec::new(), Vec::new());
        let mut may_have_more = Vec::new();
        for (at, (due, now)) in self.claim(&shares).await? {
            let asked = shares.iter().find(|share| share.0 == at).map_or(0, |share| share.1 as usize);
            if due.len() >= asked {
                may_have_more.push(at);
            }
            all.extend(due);
            times.push(now);
        }
        for at in may_have_more {
            let rest = limit - u32::try_from(all.len()).unwrap_or(limit).min(limit);
            if rest == 0 {
                break;
            }
            // What was claimed already is returned, whatever becomes of this.
            for (_, (due, _)) in self.claim(&[(at, rest)]).await.unwrap_or_default() {
                all.extend(due);
            }
        }
        all.sort_by(|one, other| (one.at, &one.tenant, &one.key).cmp(&(other.at, &other.tenant, &other.key)));
        let now = times.into_iter().min().ok_or_else(|| StoreError::unavailable("no shard answered"))?;
        Ok((all, now))
    }

    async fn sweep_orphans(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let share = limit.div_ceil(u32::from(self.shard_count()));
        let calls = self.shards.iter().enumerate().map(|(at, shard)| {
            let store = Arc::clone(&shard.store);
            (at, async move { store.sweep_orphans(before, share).await })
        });
        Ok(self.on_shards(calls).await?.into_iter().map(|(_, count)| count).sum())
    }

    async fn sweep_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let share = limit.div_ceil(u32::from(self.shard_count()));
        let calls = self.shards.iter().enumerate().map(|(at, shard)| {
            let store = Arc::clone(&shard.store);
            (at, async move { store.sweep_audit(before, share).await })
        });
        Ok(self.on_shards(calls).await?.into_iter().map(|(_, count)| count).sum())
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let calls = self.shards.iter().enumerate().map(|(at, shard)| {
            let store = Arc::clone(&shard.store);
            (at, async move { store.now().await })
        });
        let times = self.on_shards(calls).await?;
        let earliest = times.into_iter().map(|(_, now)| now).min();
        earliest.ok_or_else(|| StoreError::unavailable("no shard answered"))
    }

    fn estimated_now(&self, tenant: &TenantId) -> Option<Timestamp> {
        self.of(tenant).store.estimated_now(tenant)
    }

    /// Changes with each of the shards' histories.
    fn timeline(&self) -> u64 {
        self.shards.iter().fold(0, |all, shard| all.wrapping_mul(31).wrapping_add(shard.store.timeline()))
    }

    fn shard_count(&self) -> u16 {
        u16::try_from(self.shards.len()).unwrap_or(u16::MAX)
    }

    /// FNV-1a, which is the same in every process.
    fn shard_of(&self, tenant: &TenantId) -> Shard {
        Shard::of_nodes_tenant(tenant).unwrap_or_else(|| {
            let hash = tenant.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
            // The low bits of the last byte would decide alone.
            Shard(u16::try_from((hash >> 32) % u64::from(self.shard_count())).unwrap_or_default())
        })
    }
}
