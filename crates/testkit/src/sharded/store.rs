//! Shards that fail on purpose.

use std::{
    future::pending,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use countersign_core::store::{
    Cargo, CargoPosition, Change, Delivery, DeliveryPage, DeliveryQuery, Due, Epoch, InInboxes, Key, Kind,
    Loaded, Mailbox, MailboxKey, Membership, NotedPage, Outcome, PayloadId, Record, Relocation, Residence,
    ResidencePage, Shard, Store, StoreError, Unloading,
};
use countersign_store_sharded::{Options, Part, ShardedStore};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use parking_lot::Mutex;
use tokio::time::sleep;

/// What a shard does instead of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Every call fails at once, as with a server that refuses connections.
    Fails,
    /// No call ends, as with a network that drops packets.
    Hangs,
    /// Only what is about all shards is answered, as with a network that starts to drop packets after a claim.
    HangsAfterClaims,
    /// Everything is answered but which tenants were moved.
    SaysNothingOfMoves,
    /// Everything is answered, and which tenants were moved takes long.
    SaysLateOfMoves,
}

/// How long it takes, and shorter than it is believed.
const LATE: Duration = Duration::from_millis(60);

/// A store, and the same one if its tenants can be moved.
type MaybeRelocatable = (Arc<dyn Store>, Option<Arc<dyn Relocation>>);

/// A sharded store whose shards can be made to fail.
pub struct FaultyShards {
    store: Arc<ShardedStore>,
    shards: Vec<Arc<FaultyShard>>,
    steps_left: Arc<AtomicI64>,
}

impl FaultyShards {
    /// Over stores of which no tenant can be moved.
    pub async fn over(stores: Vec<Arc<dyn Store>>) -> Self {
        let stores = stores.into_iter().map(|store| (store, None)).collect();
        Self::with(stores, Options::default()).await
    }

    /// Over stores between which tenants can be moved.
    pub async fn relocatable(stores: Vec<Arc<dyn Relocation>>, options: Options) -> Self {
        let stores = stores
            .into_iter()
            .map(|store| (Arc::<dyn Relocation>::clone(&store) as Arc<dyn Store>, Some(store)));
        Self::with(stores.collect(), options).await
    }

    async fn with(stores: Vec<MaybeRelocatable>, options: Options) -> Self {
        let steps_left = Arc::new(AtomicI64::new(i64::MAX));
        let faulty = |(number, (store, relocation))| {
            Arc::new(FaultyShard {
                number: Shard(number),
                store,
                relocation,
                fault: Mutex::default(),
                asked_of_moves: AtomicUsize::new(0),
                steps_left: Arc::clone(&steps_left),
            })
        };
        let shards: Vec<Arc<FaultyShard>> = (0..).zip(stores).map(faulty).collect();
        let part = |shard: &Arc<FaultyShard>| {
            (format!("shard-{}", shard.number.0), Part::Open(Arc::<FaultyShard>::clone(shard)))
        };
        let store = ShardedStore::open(shards.iter().map(part).collect(), "test", options).await.unwrap();
        Self { store, shards, steps_left }
    }

    /// The store that all of them are.
    pub fn store(&self) -> Arc<ShardedStore> {
        Arc::clone(&self.store)
    }

    /// What a shard does from now on; `None` to answer again.
    pub fn set_fault(&self, shard: Shard, fault: Option<Fault>) {
        *self.shards[usize::from(shard.0)].fault.lock() = fault;
        // One that hangs would take all of the patience that one that works may need.
        self.store.set_late(shard, fault == Some(Fault::Hangs));
    }

    /// Kills whoever moves tenants after so many steps; `None` for never.
    pub fn kill_mover_after(&self, steps: Option<i64>) {
        self.steps_left.store(steps.unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// How often this shard was asked which tenants were moved.
    pub fn asked_of_moves(&self, shard: Shard) -> usize {
        self.shards[usize::from(shard.0)].asked_of_moves.load(Ordering::SeqCst)
    }

    /// A tenant that is on this shard, another one for every `number`.
    ///
    /// # Panics
    ///
    /// If there is no such shard.
    pub fn tenant_on(&self, shard: Shard, number: usize) -> TenantId {
        let names = (0..10_000).map(|name| format!("tenant-{name}").parse().unwrap());
        names.filter(|tenant| self.store.shard_of(tenant) == shard).nth(number).expect("such a shard")
    }
}

impl Deref for FaultyShards {
    type Target = ShardedStore;

    fn deref(&self) -> &ShardedStore {
        &self.store
    }
}

/// A shard that answers unless it has a fault.
struct FaultyShard {
    number: Shard,
    store: Arc<dyn Store>,
    /// `None` for a store of which no tenant can be moved.
    relocation: Option<Arc<dyn Relocation>>,
    fault: Mutex<Option<Fault>>,
    asked_of_moves: AtomicUsize,
    /// Of movers on all shards.
    steps_left: Arc<AtomicI64>,
}

impl FaultyShard {
    /// The result of a call about one tenant, unless the shard has a fault.
    async fn call<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let fault = *self.fault.lock();
        match fault {
            None | Some(Fault::SaysNothingOfMoves | Fault::SaysLateOfMoves) => call.await,
            Some(Fault::Fails) => Err(StoreError::unavailable("the test says so")),
            Some(Fault::Hangs | Fault::HangsAfterClaims) => pending().await,
        }
    }

    /// The result of a call about all shards, unless this one has a fault that keeps it from answering.
    async fn call_of_all<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let fault = *self.fault.lock();
        match fault {
            Some(Fault::HangsAfterClaims) => call.await,
            _ => self.call(call).await,
        }
    }

    /// The result of a step of a move, unless the mover is killed after it.
    async fn step<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let result = self.call(call).await;
        match self.steps_left.fetch_sub(1, Ordering::SeqCst) {
            ..=0 => Err(StoreError::unavailable("the mover was killed")),
            _ => result,
        }
    }

    fn relocation(&self) -> Result<&Arc<dyn Relocation>, StoreError> {
        self.relocation
            .as_ref()
            .ok_or_else(|| StoreError::unavailable("no tenant of this store can be moved"))
    }
}

#[async_trait]
impl Store for FaultyShard {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        self.call(self.store.load(tenant, keys)).await
    }

    async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        self.call(self.store.commit(change)).await
    }

    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.call(self.store.payloads(tenant, ids)).await
    }

    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError> {
        self.call(self.store.deliveries(tenant, query)).await
    }

    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        self.call(self.store.deliveries_by_subject(tenant, subject)).await
    }

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<Option<u64>>, StoreError> {
        self.call_of_all(self.store.heads(mailboxes)).await
    }

    async fn noted(&self, shard: Shard, since: Option<u64>) -> Result<NotedPage, StoreError> {
        self.call_of_all(self.store.noted(shard, since)).await
    }

    async fn forget_noted(&self, shard: Shard, before: u64, limit: u32) -> Result<u64, StoreError> {
        self.call(self.store.forget_noted(shard, before, limit)).await
    }

    async fn tenants(
        &self,
        shard: Shard,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        self.call(self.store.tenants(shard, after, limit)).await
    }

    async fn in_inboxes(&self, shard: Shard, limit: u32) -> Result<InInboxes, StoreError> {
        self.call(self.store.in_inboxes(shard, limit)).await
    }

    async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        self.call(self.store.stored_bytes(tenant)).await
    }

    async fn erase(&self, tenant: &TenantId, limit: u32) -> Result<u64, StoreError> {
        self.call(self.store.erase(tenant, limit)).await
    }

    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        self.call(self.store.scan(tenant, kind, after, limit)).await
    }

    async fn claim_due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        self.call_of_all(self.store.claim_due(limit)).await
    }

    async fn sweep_orphans(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.call_of_all(self.store.sweep_orphans(before, limit)).await
    }

    async fn sweep_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        self.call_of_all(self.store.sweep_audit(before, limit)).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.call_of_all(self.store.now()).await
    }

    fn estimated_now(&self, tenant: &TenantId) -> Option<Timestamp> {
        self.store.estimated_now(tenant)
    }

    fn timeline(&self) -> u64 {
        self.store.timeline()
    }

    fn shard_count(&self) -> u16 {
        self.store.shard_count()
    }

    fn shard_of(&self, tenant: &TenantId) -> Shard {
        self.store.shard_of(tenant)
    }
}

#[async_trait]
impl Relocation for FaultyShard {
    async fn membership(&self) -> Result<Option<Membership>, StoreError> {
        match &self.relocation {
            Some(relocation) => self.call(relocation.membership()).await,
            // Half of the names that the suite knows must be on each shard, whatever the stores have already.
            None => Ok(Some(Membership {
                store_id: "test".to_owned(),
                shard: self.number,
                name: format!("shard-{}", self.number.0),
                buckets: [0, 1].repeat(128),
            })),
        }
    }

    async fn join(&self, membership: &Membership) -> Result<Membership, StoreError> {
        self.call(self.relocation()?.join(membership)).await
    }

    async fn commit_in(&self, epoch: Epoch, change: Change) -> Result<Outcome, StoreError> {
        match &self.relocation {
            Some(relocation) => self.call(relocation.commit_in(epoch, change)).await,
            None => self.commit(change).await,
        }
    }

    async fn residences(&self, since: u64) -> Result<ResidencePage, StoreError> {
        self.asked_of_moves.fetch_add(1, Ordering::SeqCst);
        if *self.fault.lock() == Some(Fault::SaysLateOfMoves) {
            sleep(LATE).await;
        }
        match &self.relocation {
            Some(_) if *self.fault.lock() == Some(Fault::SaysNothingOfMoves) => {
                Err(StoreError::unavailable("the test says so"))
            }
            Some(relocation) => self.call(relocation.residences(since)).await,
            None => self.call(async { Ok(ResidencePage { changes: Vec::new(), read_to: since }) }).await,
        }
    }

    async fn residence(&self, tenant: &TenantId) -> Result<Option<Residence>, StoreError> {
        match &self.relocation {
            Some(relocation) => self.step(relocation.residence(tenant)).await,
            None => Ok(None),
        }
    }

    async fn change_residence(
        &self,
        tenant: &TenantId,
        from: Option<Residence>,
        to: Residence,
    ) -> Result<Option<Residence>, StoreError> {
        match &self.relocation {
            Some(relocation) => self.step(relocation.change_residence(tenant, from, to)).await,
            None => Ok(Some(to)),
        }
    }

    async fn unload(&self, tenant: &TenantId, from: CargoPosition) -> Result<Box<dyn Unloading>, StoreError> {
        self.step(self.relocation()?.unload(tenant, from)).await
    }

    async fn arrived(&self, tenant: &TenantId, epoch: Epoch) -> Result<CargoPosition, StoreError> {
        self.step(self.relocation()?.arrived(tenant, epoch)).await
    }

    async fn load_cargo(
        &self,
        tenant: &TenantId,
        epoch: Epoch,
        after: &CargoPosition,
        cargo: &Cargo,
    ) -> Result<(), StoreError> {
        self.step(self.relocation()?.load_cargo(tenant, epoch, after, cargo)).await
    }

    async fn version_floor(&self) -> Result<u64, StoreError> {
        self.step(self.relocation()?.version_floor()).await
    }

    async fn raise_version_floor(&self, floor: u64) -> Result<(), StoreError> {
        self.step(self.relocation()?.raise_version_floor(floor)).await
    }

    async fn clear(&self, tenant: &TenantId, residence: Residence, limit: u32) -> Result<u64, StoreError> {
        self.step(self.relocation()?.clear(tenant, residence, limit)).await
    }
}
