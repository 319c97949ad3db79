//! The shards together: how they are opened, and where tenants are.

use std::{
    collections::HashMap,
    sync::{Arc, Weak, atomic::AtomicUsize},
    time::Duration,
};

use countersign_core::store::{Relocation, Shard, Store as _, StoreError, error_chain};
use countersign_wire::id::TenantId;
use parking_lot::RwLock;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    buckets::Buckets,
    error::OpenError,
    membership,
    part::{Opening, Part},
    placement::{Location, Whereabouts},
    shard::OneShard,
};

/// How often each shard is asked which tenants were moved.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How often a database that was never reached is tried.
const REACH_INTERVAL: Duration = Duration::from_secs(2);

/// How long a shard is waited for, and believed.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// What is about all shards is answered without those that take longer. One that works may be slow.
    pub patience: Duration,
    /// For how long what a shard has said of its tenants counts: nobody reads a tenant from a shard that has not confirmed for
    /// longer that it is there. A move takes longer than this, so all nodes must have the same.
    pub believed_for: Duration,
}

impl Options {
    /// Well before what is known of a shard has become too old.
    fn poll_interval(&self) -> Duration {
        POLL_INTERVAL.min(self.believed_for / 4)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { patience: Duration::from_secs(30), believed_for: Duration::from_secs(10) }
    }
}

/// Spreads tenants over several stores. What is about one tenant is about its shard alone.
pub struct ShardedStore {
    pub(crate) shards: Vec<OneShard>,
    pub(crate) options: Options,
    store_id: String,
    buckets: Buckets,
    /// Of the tenants that were moved.
    moved: RwLock<HashMap<TenantId, Location>>,
    /// A shard has refused a tenant that was thought to be there.
    pub(crate) is_outdated: Arc<Notify>,
    /// The shard whose turn it is to get what a division of a limit leaves over.
    pub(crate) turn: AtomicUsize,
}

impl std::fmt::Debug for ShardedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardedStore").field("store_id", &self.store_id).finish_non_exhaustive()
    }
}

impl ShardedStore {
    /// Puts these databases together, in the order of their numbers, each with its name. The first must answer. If no shards
    /// were set up before, `new_store_id` names them; it must be new.
    pub async fn open(
        parts: Vec<(String, Part)>,
        new_store_id: &str,
        options: Options,
    ) -> Result<Arc<Self>, OpenError> {
        let Some((_, Part::Open(first))) = parts.first() else { return Err(OpenError::NoFirst) };
        let first = Arc::clone(first);
        let (store_id, buckets) = membership::found(&*first, &parts, new_store_id).await?;
        let mut away = Vec::new();
        let mut shards = Vec::new();
        for (number, (name, part)) in (0..).zip(parts) {
            let shard = OneShard::new(name, options.patience);
            match part {
                Part::Open(store) => {
                    membership::join(&*store, &*first, &store_id, &buckets, Shard(number), &shard.name)
                        .await?;
                    shard.opened(store);
                }
                Part::Away(opening) => away.push((Shard(number), opening)),
            }
            shards.push(shard);
        }
        let store = Arc::new(Self {
            shards,
            options,
            store_id,
            buckets,
            moved: RwLock::default(),
            is_outdated: Arc::default(),
            turn: AtomicUsize::new(0),
        });
        for (number, shard) in (0..).map(Shard).zip(&store.shards) {
            if shard.is_open() {
                let failed = |source| OpenError::Store { name: shard.name.clone(), source };
                store.read_residences(number, Duration::ZERO).await.map_err(failed)?;
            }
            tokio::spawn(follow(Arc::downgrade(&store), number, options, Arc::clone(&store.is_outdated)));
        }
        if let Some(missing) = store.moved.read().values().find(|at| at.shard.0 >= store.shard_count()) {
            return Err(OpenError::Missing { missing: missing.shard.0 });
        }
        for (shard, opening) in away {
            tokio::spawn(reach(Arc::downgrade(&store), shard, opening));
        }
        Ok(store)
    }

    /// What operators call the shards, in the order of their numbers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.shards.iter().map(|shard| shard.name.as_str())
    }

    /// Whether this shard is taken for one that does not answer in time: what is about all shards hardly waits for it then.
    pub fn set_late(&self, shard: Shard, is_late: bool) {
        if let Some(shard) = self.shards.get(usize::from(shard.0)) {
            shard.set_late(is_late);
        }
    }

    pub(crate) fn shard(&self, shard: Shard) -> Result<&OneShard, StoreError> {
        let unknown = || {
            StoreError::unavailable(format!(
                "shard number {} is not among those that this node knows; list it in the configuration",
                shard.0 + 1
            ))
        };
        self.shards.get(usize::from(shard.0)).ok_or_else(unknown)
    }

    /// Makes sure that a database which answers only now is this shard.
    async fn join(&self, opened: &dyn Relocation, shard: Shard) -> Result<(), String> {
        let first = self.shard(Shard(0)).and_then(OneShard::store).map_err(|error| error_chain(&error))?;
        let name = self.shard(shard).map_err(|error| error_chain(&error))?.name.as_str();
        let joined = membership::join(opened, &**first, &self.store_id, &self.buckets, shard, name).await;
        joined.map_err(|error| error_chain(&error))
    }

    pub(crate) fn home(&self, tenant: &TenantId) -> Shard {
        self.buckets.home(tenant)
    }

    pub(crate) fn location(&self, tenant: &TenantId) -> Location {
        if let Some(shard) = Shard::of_nodes_tenant(tenant) {
            return Location::home(shard);
        }
        let moved = self.moved.read().get(tenant).copied();
        moved.unwrap_or_else(|| Location::home(self.home(tenant)))
    }

    /// The shard of a tenant, unless it is just leaving it.
    pub(crate) fn of(&self, tenant: &TenantId) -> Result<(Location, &Arc<dyn Relocation>), StoreError> {
        let location = self.location(tenant);
        if location.is_leaving {
            return Err(StoreError::Moved);
        }
        Ok((location, self.shard(location.shard)?.store()?))
    }

    /// Reads residences, and where the tenants are that they are about, unless that was done within `fresh`.
    pub(crate) async fn read_residences(&self, shard: Shard, fresh: Duration) -> Result<(), StoreError> {
        self.shard(shard)?.read_residences(fresh, |changed| self.take_residences(changed)).await
    }

    fn take_residences(&self, changed: Vec<TenantId>) {
        if changed.is_empty() {
            return;
        }
        let mut moved = self.moved.write();
        // What nodes share is where its name says. It has residences because shards have joined.
        for tenant in changed.into_iter().filter(|tenant| Shard::of_nodes_tenant(tenant).is_none()) {
            let said = (0..).map(Shard).zip(&self.shards);
            let said = said.filter_map(|(number, shard)| Some((number, shard.residence(&tenant)?)));
            match Whereabouts::of(said).location() {
                Some(location) => moved.insert(tenant, location),
                None => moved.remove(&tenant),
            };
        }
    }

    /// What was read of a tenant, if it was at this place when it was read. Asked afterwards: however long the read took, the
    /// tenant has not been anywhere else before it ended.
    pub(crate) async fn confirmed<T>(
        &self,
        tenant: &TenantId,
        at: Location,
        read: T,
    ) -> Result<T, StoreError> {
        match self.is_still(std::iter::once(tenant), at.shard).await? && self.location(tenant) == at {
            true => Ok(read),
            false => Err(StoreError::Moved),
        }
    }

    /// Makes sure that what is known of this shard's tenants still counts. False if one of these is not there any more.
    pub(crate) async fn is_still(
        &self,
        mut tenants: impl Iterator<Item = &TenantId> + Send,
        at: Shard,
    ) -> Result<bool, StoreError> {
        let believed_for = self.options.believed_for;
        if !self.shard(at)?.is_known(believed_for) {
            self.read_residences(at, believed_for).await?;
        }
        Ok(tenants.all(|tenant| {
            let location = self.location(tenant);
            location.shard == at && !location.is_leaving
        }))
    }

    /// Whether what a shard has of a tenant is what counts.
    pub(crate) fn is_at(&self, tenant: &TenantId, shard: Shard) -> bool {
        let location = self.location(tenant);
        location.shard == shard && !location.is_leaving
    }
}

/// Follows the moves of tenants as long as the store is used.
async fn follow(store: Weak<ShardedStore>, shard: Shard, options: Options, is_outdated: Arc<Notify>) {
    loop {
        let Some(store) = store.upgrade() else { return };
        if store.shards.get(usize::from(shard.0)).is_some_and(OneShard::is_open)
            && let Err(error) = store.read_residences(shard, Duration::ZERO).await
        {
            let error = error_chain(&error);
            tracing::debug!(
                error,
                shard = shard.0,
                "the residences of a shard were not read; it will be retried"
            );
        }
        // One that is notified only later has just read.
        drop(store);
        drop(timeout(options.poll_interval(), is_outdated.notified()).await);
    }
}

/// Opens a shard that did not answer when this node was started.
async fn reach(store: Weak<ShardedStore>, shard: Shard, opening: Opening) {
    loop {
        sleep(REACH_INTERVAL).await;
        let opened = opening().await;
        let Some(store) = store.upgrade() else { return };
        let Ok(one) = store.shard(shard) else { return };
        let joined = match opened {
            Ok(opened) => store.join(&*opened, shard).await.map(|()| one.opened(opened)),
            Err(error) => Err(error_chain(&error)),
        };
        match joined {
            Ok(()) => {
                tracing::info!(shard = one.name, "a shard that was away is there");
                return;
            }
            Err(error) => {
                tracing::warn!(error, shard = one.name, "a shard can't be used; it will be retried");
            }
        }
    }
}
