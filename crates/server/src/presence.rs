//! Which enforcers were seen. Collected in memory, written in batches, cheap to lose.

use std::{collections::HashMap, sync::Arc, time::Duration};

use countersign_core::{
    Gateway, model::presence::PRESENCE_WRITE_INTERVAL, use_cases::presence::SelfDescription,
};
use countersign_wire::{
    id::{EnforcerId, TenantId},
    presence::Transport,
};
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

/// What arrives within this time is written together.
const BATCH_WINDOW: Duration = Duration::from_millis(200);

/// Writes that wait for the store at the same time.
const MAX_CONCURRENT_WRITES: usize = 64;

type Who = (TenantId, EnforcerId);

#[derive(Debug, Default)]
struct Sightings {
    to_write: HashMap<Who, (Transport, SelfDescription)>,
    written: HashMap<Who, (Transport, Instant)>,
}

/// Records calls and channels of enforcers. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct PresenceRecorder {
    sightings: Arc<Mutex<Sightings>>,
    wake: Arc<Notify>,
}

impl PresenceRecorder {
    pub(crate) fn start(gateway: Gateway) -> Self {
        let recorder = Self { sightings: Arc::default(), wake: Arc::default() };
        tokio::spawn(write(gateway, recorder.clone()));
        recorder
    }

    /// An enforcer has called, or opened or closed a channel.
    pub(crate) fn seen(&self, tenant: &TenantId, enforcer: &EnforcerId, transport: Transport) {
        self.record(tenant, enforcer, transport, None);
    }

    /// An enforcer has described itself.
    pub(crate) fn described(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        transport: Transport,
        description: SelfDescription,
    ) {
        self.record(tenant, enforcer, transport, Some(description));
    }

    /// A channel of the enforcer was closed, which the store records. What was collected before must not undo that, and
    /// the next call must be recorded.
    pub(crate) fn forget(&self, tenant: &TenantId, enforcer: &EnforcerId) {
        let who = (tenant.clone(), enforcer.clone());
        let mut sightings = self.sightings.lock();
        sightings.written.remove(&who);
        sightings.to_write.remove(&who);
    }

    fn record(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        transport: Transport,
        description: Option<SelfDescription>,
    ) {
        let who = (tenant.clone(), enforcer.clone());
        let mut sightings = self.sightings.lock();
        let known = sightings.written.get(&who);
        let fresh =
            known.is_some_and(|(how, at)| *how == transport && at.elapsed() < PRESENCE_WRITE_INTERVAL);
        if fresh && description.is_none() {
            return;
        }
        sightings.written.insert(who.clone(), (transport, Instant::now()));
        let entry = sightings.to_write.entry(who).or_insert_with(|| (transport, SelfDescription::default()));
        entry.0 = transport;
        if let Some(description) = description {
            entry.1 = description;
        }
        drop(sightings);
        self.wake.notify_one();
    }
}

async fn write(gateway: Gateway, recorder: PresenceRecorder) {
    loop {
        recorder.wake.notified().await;
        let to_write = {
            let mut sightings = recorder.sightings.lock();
            sightings.written.retain(|_, (_, at)| at.elapsed() < PRESENCE_WRITE_INTERVAL);
            std::mem::take(&mut sightings.to_write)
        };
        let writes = to_write.into_iter().map(|((tenant, enforcer), (transport, description))| {
            let gateway = &gateway;
            async move {
                if let Err(error) = gateway.record_presence(&tenant, &enforcer, transport, description).await
                {
                    tracing::debug!(%error, "presence was not written");
                }
            }
        });
        // Enough at once for the store to batch them, and not so many that its queue is full for others.
        stream::iter(writes).buffer_unordered(MAX_CONCURRENT_WRITES).collect::<()>().await;
        sleep(BATCH_WINDOW).await;
    }
}
