//! Which enforcers were heard of. Noted in memory, written in batches, cheap to lose.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use countersign_core::{
    Gateway, model::presence::PRESENCE_WRITE_INTERVAL, use_cases::presence::SelfDescription,
};
use countersign_wire::{
    id::{EnforcerId, TenantId},
    presence::Transport,
};
use futures_util::{StreamExt as _, stream};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

/// What has come together in this time is written together.
const GATHER: Duration = Duration::from_millis(200);

/// Writes that wait for the store at the same time.
const AT_ONCE: usize = 64;

type Who = (TenantId, EnforcerId);

#[derive(Debug, Default)]
struct Heard {
    to_write: HashMap<Who, (Transport, SelfDescription)>,
    written: HashMap<Who, (Transport, Instant)>,
}

/// Notes calls and channels of enforcers.
#[derive(Debug, Clone)]
pub(crate) struct PresenceLog {
    heard: Arc<Mutex<Heard>>,
    woken: Arc<Notify>,
}

impl PresenceLog {
    pub(crate) fn start(gateway: Gateway) -> Self {
        let log = Self { heard: Arc::default(), woken: Arc::default() };
        tokio::spawn(write(gateway, log.clone()));
        log
    }

    /// An enforcer has called.
    pub(crate) fn heard(&self, tenant: &TenantId, enforcer: &EnforcerId, transport: Transport) {
        self.note(tenant, enforcer, transport, None);
    }

    /// An enforcer has told of itself.
    pub(crate) fn told(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        transport: Transport,
        says: SelfDescription,
    ) {
        self.note(tenant, enforcer, transport, Some(says));
    }

    fn note(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        transport: Transport,
        says: Option<SelfDescription>,
    ) {
        let who = (tenant.clone(), enforcer.clone());
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let known = heard.written.get(&who);
        let fresh =
            known.is_some_and(|(how, at)| *how == transport && at.elapsed() < PRESENCE_WRITE_INTERVAL);
        if fresh && says.is_none() {
            return;
        }
        heard.written.insert(who.clone(), (transport, Instant::now()));
        let noted = heard.to_write.entry(who).or_insert_with(|| (transport, SelfDescription::default()));
        noted.0 = transport;
        if let Some(says) = says {
            noted.1 = says;
        }
        drop(heard);
        self.woken.notify_one();
    }
}

async fn write(gateway: Gateway, log: PresenceLog) {
    loop {
        log.woken.notified().await;
        let to_write = {
            let mut heard = log.heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.written.retain(|_, (_, at)| at.elapsed() < PRESENCE_WRITE_INTERVAL);
            std::mem::take(&mut heard.to_write)
        };
        let writes = to_write.into_iter().map(|((tenant, enforcer), (transport, says))| {
            let gateway = &gateway;
            async move {
                if let Err(error) = gateway.record_presence(&tenant, &enforcer, transport, says).await {
                    tracing::debug!(%error, "presence was not written");
                }
            }
        });
        // Enough at once for the store to write them together, and not so many that others find no room.
        stream::iter(writes).buffer_unordered(AT_ONCE).collect::<()>().await;
        sleep(GATHER).await;
    }
}
