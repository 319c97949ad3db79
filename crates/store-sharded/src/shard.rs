//! One shard: whether it answers, and which tenants it says are on it.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use countersign_core::store::{Relocation, Residence, StoreError};
use countersign_wire::id::TenantId;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

/// What is about all shards waits as long as this for one that did not answer the last time, which would take all of its
/// patience each time.
const PATIENCE_WITH_LATE: Duration = Duration::from_millis(500);

/// How long it may take to read residences, with the wait for those who read them already. Longer than a query, and shorter than
/// what is known of them counts.
const MAX_READ: Duration = Duration::from_secs(3);

pub(crate) struct OneShard {
    pub(crate) name: String,
    /// Empty as long as the database has never answered.
    store: OnceLock<Arc<dyn Relocation>>,
    patience: Duration,
    /// Whether it did not answer in time when it was last asked.
    is_late: AtomicBool,
    known: Mutex<Known>,
    /// Held while residences are read, so that what is older is never taken for newer.
    reading: tokio::sync::Mutex<()>,
}

/// The residences of a shard, as they were read.
#[derive(Default)]
struct Known {
    by_tenant: HashMap<TenantId, Residence>,
    read_to: u64,
    /// The history of the database that this is of.
    timeline: u64,
    /// When it was last asked for, of what everybody goes by already; `None` as long as it did not answer.
    at: Option<Instant>,
}

impl OneShard {
    pub(crate) fn new(name: String, patience: Duration) -> Self {
        Self {
            name,
            store: OnceLock::new(),
            patience,
            is_late: AtomicBool::new(false),
            known: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// The first store that is given counts.
    pub(crate) fn opened(&self, store: Arc<dyn Relocation>) {
        drop(self.store.set(store));
    }

    pub(crate) fn is_open(&self) -> bool {
        self.store.get().is_some()
    }

    pub(crate) fn store(&self) -> Result<&Arc<dyn Relocation>, StoreError> {
        self.store
            .get()
            .ok_or_else(|| StoreError::unavailable(format!("shard {} was not reached yet", self.name)))
    }

    pub(crate) fn set_late(&self, is_late: bool) {
        self.is_late.store(is_late, Ordering::Relaxed);
    }

    /// What the shard answers in time.
    pub(crate) async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let patience = if self.is_late.load(Ordering::Relaxed) { PATIENCE_WITH_LATE } else { self.patience };
        let answered = timeout(patience, call).await;
        self.set_late(answered.is_err());
        let late = || StoreError::unavailable(format!("shard {} did not answer in time", self.name));
        answered.map_err(|_| late())?
    }

    /// Reads what has changed of the residences since the last time, unless they were read within `fresh`. Whoever takes the tenants
    /// that it is about goes by them before they count as known.
    pub(crate) async fn read_residences(
        &self,
        fresh: Duration,
        take: impl FnOnce(Vec<TenantId>),
    ) -> Result<(), StoreError> {
        let read = timeout(MAX_READ, self.read_in_turn(fresh, take)).await;
        read.map_err(|_| StoreError::unavailable("the residences were not read in time"))?
    }

    async fn read_in_turn(
        &self,
        fresh: Duration,
        take: impl FnOnce(Vec<TenantId>),
    ) -> Result<(), StoreError> {
        let _reading = self.reading.lock().await;
        // Somebody else has read them meanwhile.
        if self.is_known(fresh) {
            return Ok(());
        }
        let store = self.store()?;
        let at = Instant::now();
        // Another history of the database may have changes with numbers of this one.
        let timeline = store.timeline();
        let since = {
            let known = self.known.lock();
            if known.timeline == timeline { known.read_to } else { 0 }
        };
        let page = store.residences(since).await?;
        let mut changed: Vec<TenantId> = Vec::new();
        {
            let mut known = self.known.lock();
            if known.timeline != timeline {
                changed.extend(std::mem::take(&mut known.by_tenant).into_keys());
            }
            for (tenant, residence) in page.changes {
                changed.push(tenant.clone());
                known.by_tenant.insert(tenant, residence);
            }
            (known.read_to, known.timeline) = (page.read_to, timeline);
        }
        take(changed);
        self.known.lock().at = Some(at);
        Ok(())
    }

    /// Whether what is known of the residences is at most this old.
    pub(crate) fn is_known(&self, at_most: Duration) -> bool {
        self.known.lock().at.is_some_and(|at| at.elapsed() < at_most)
    }

    pub(crate) fn residence(&self, tenant: &TenantId) -> Option<Residence> {
        self.known.lock().by_tenant.get(tenant).copied()
    }
}
