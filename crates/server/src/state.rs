//! What handlers share.

use std::{io, num::NonZeroUsize, sync::Arc, thread, time::Duration};

use countersign_core::{
    Gateway,
    model::{channels::LEASE, pairing::CodeKey},
    store::Shard,
};
use countersign_wire::{
    id::{GatewayId, TenantId},
    mac::MacKey,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    api_keys::ApiKeys,
    config::NotificationsConfig,
    error::ApiError,
    joins::Joins,
    limits::{CpuPool, FairSemaphore, StoredQuota, TenantQuota, max_connections},
    live::{Live, LiveSettings},
    metrics::ServerMetrics,
    notifications::Notifier,
    presence::PresenceRecorder,
    secrets::{Secret, Secrets},
    shutdown::Drain,
};

/// Bytes of what clients send that may be in memory at once.
const MAX_REQUEST_BYTES: usize = 256 << 20;

/// Concurrent reads for pushing. Fewer than the store's readers: a thousand channels with a backlog must not delay
/// requests.
const MAX_PUSH_READS: usize = 2;

/// Requests with small bodies that are worked on at once, for each processor; others wait, in turn by tenant. As many as
/// fill a commit: more would only wait there.
const SMALL_BODIES_PER_PROCESSOR: usize = 32;

/// Bytes of large answers that may wait for their readers at once.
const MAX_RESPONSE_BYTES: usize = 128 << 20;

/// Large answers that are read from the store and rendered at once: up to 28 MB each.
const MAX_LARGE_READS: usize = 2;

/// Concurrent checks of credentials of held connections.
const MAX_REVOCATION_READS: usize = 2;

#[derive(Debug)]
pub struct AppState {
    pub(crate) gateway: Gateway,
    pub(crate) gateway_id: GatewayId,
    pub(crate) secret: Secret,
    pub(crate) codes: CodeKey,
    /// The key of the MAC in API keys, tickets and invitations.
    pub(crate) mac_key: MacKey,
    pub(crate) keys: ApiKeys,
    pub(crate) joins: Joins,
    /// Whose quota the requests of those count against who have no credential yet. No key can be for this tenant.
    pub(crate) newcomers: TenantId,
    /// What an operator can change while this runs.
    pub(crate) live: Live,
    /// What each tenant may have stored.
    pub(crate) stored: StoredQuota,
    pub(crate) websocket_idle: Duration,
    /// The beginning of links to this gateway.
    pub(crate) public_url: String,
    pub(crate) presence: PresenceRecorder,
    /// Memory for what clients send, in bytes.
    pub(crate) request_memory: TenantQuota,
    /// Memory for large answers that are not written yet, in bytes.
    pub(crate) response_memory: TenantQuota,
    /// Permits for reading and rendering large answers, which tenants take in turn.
    pub(crate) large_reads: FairSemaphore,
    /// Turns of requests with small bodies, which tenants take in turn.
    pub(crate) small_bodies: FairSemaphore,
    /// Threads on which large bodies are parsed, hashed and rendered.
    pub(crate) cpu_pool: CpuPool,
    /// Connections that are held open for long.
    pub(crate) held_connections: TenantQuota,
    /// Permits for reads of what is to be pushed, which tenants take in turn.
    pub(crate) push_reads: FairSemaphore,
    /// Permits for checks of credentials of held connections. Their own, so that none waits behind pushes.
    pub(crate) revocation_reads: FairSemaphore,
    pub(crate) drain: Drain,
    /// This node's lease on each shard of the store.
    pub(crate) leases: Leases,
    pub(crate) metrics: ServerMetrics,
    pub(crate) notifier: Arc<Notifier>,
}

/// This node's lease on each shard. A shard that takes no writes must not make its node useless to the tenants of the
/// others. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Leases(Arc<[LeaseStatus]>);

impl Leases {
    fn of_shards(count: u16) -> Self {
        Self((0..count).map(|_| LeaseStatus::default()).collect())
    }

    /// `None` if the store has no such shard.
    pub(crate) fn on(&self, shard: Shard) -> Option<&LeaseStatus> {
        self.0.get(usize::from(shard.0))
    }

    /// Whether some shard takes writes.
    pub(crate) fn any_current(&self) -> bool {
        self.0.iter().any(LeaseStatus::is_current)
    }

    /// Whether all shards take writes.
    pub(crate) fn all_current(&self) -> bool {
        self.0.iter().all(LeaseStatus::is_current)
    }

    /// How long ago the oldest of them was renewed.
    pub(crate) fn age(&self) -> Duration {
        self.0.iter().map(LeaseStatus::age).max().unwrap_or_default()
    }
}

/// This node's lease on a shard, whose renewal shows that it takes writes.
#[derive(Debug)]
pub(crate) struct LeaseStatus(Mutex<LeaseTimes>);

#[derive(Debug)]
struct LeaseTimes {
    /// `None` before the first renewal and after an attempt that failed.
    current: Option<Instant>,
    /// The last renewal; before the first one, the start.
    last: Instant,
}

impl Default for LeaseStatus {
    fn default() -> Self {
        Self(Mutex::new(LeaseTimes { current: None, last: Instant::now() }))
    }
}

impl LeaseStatus {
    pub(crate) fn renewed(&self) {
        let now = Instant::now();
        *self.0.lock() = LeaseTimes { current: Some(now), last: now };
    }

    pub(crate) fn failed(&self) {
        self.0.lock().current = None;
    }

    /// The time since the last renewal, or since the start before the first one.
    pub(crate) fn age(&self) -> Duration {
        self.0.lock().last.elapsed()
    }

    /// False if the last attempt failed, or none has ended for as long as a lease lasts.
    pub(crate) fn is_current(&self) -> bool {
        let renewed = self.0.lock().current;
        renewed.is_some_and(|renewed| renewed.elapsed() < LEASE)
    }
}

pub(crate) type SharedState = Arc<AppState>;

/// What an operator sets of how clients are treated.
#[derive(Debug)]
pub struct Settings {
    pub live: LiveSettings,
    /// Bytes that one tenant may have stored; `None` for no limit.
    pub max_stored_bytes: Option<u64>,
    /// A WebSocket from which nothing is received for this long is closed.
    pub websocket_idle: Duration,
    /// The beginning of links to this gateway, without a slash at the end.
    pub public_url: String,
    pub notifications: NotificationsConfig,
    /// How long the end of this process is announced before it begins.
    pub stop_notice: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let websocket_idle = Duration::from_mins(2);
        Self {
            live: LiveSettings::default(),
            max_stored_bytes: None,
            websocket_idle,
            public_url: "http://127.0.0.1:8787".to_owned(),
            notifications: NotificationsConfig::default(),
            stop_notice: Duration::ZERO,
        }
    }
}

impl AppState {
    /// Fails only if no thread can be started.
    pub fn new(
        gateway: Gateway,
        gateway_id: GatewayId,
        secrets: Secrets,
        settings: Settings,
    ) -> io::Result<Arc<Self>> {
        let mac_key = secrets.mac_key();
        let metrics = ServerMetrics::default();
        let Settings { notifications, public_url, .. } = &settings;
        let notifier =
            Notifier::new(notifications, public_url, gateway.clone(), secrets.sealer(), metrics.clone());
        let notifier = Arc::new(notifier.map_err(io::Error::other)?);
        Ok(Arc::new(Self {
            keys: ApiKeys::new(gateway.clone(), mac_key.clone()),
            joins: Joins::new(gateway.clone(), mac_key.clone()),
            newcomers: TenantId::new("(newcomers)").map_err(io::Error::other)?,
            presence: PresenceRecorder::start(gateway.clone()),
            codes: secrets.shared.code_key(),
            mac_key,
            request_memory: TenantQuota::new(MAX_REQUEST_BYTES),
            response_memory: TenantQuota::new(MAX_RESPONSE_BYTES),
            large_reads: FairSemaphore::new(MAX_LARGE_READS),
            small_bodies: FairSemaphore::new(SMALL_BODIES_PER_PROCESSOR * processors()),
            cpu_pool: CpuPool::start("large-bodies")?,
            held_connections: TenantQuota::new(max_connections()),
            push_reads: FairSemaphore::new(MAX_PUSH_READS),
            revocation_reads: FairSemaphore::new(MAX_REVOCATION_READS),
            drain: Drain::after(settings.stop_notice),
            leases: Leases::of_shards(gateway.store().shard_count()),
            metrics,
            notifier,
            gateway,
            gateway_id,
            secret: secrets.shared,
            live: Live::new(settings.live),
            stored: StoredQuota::new(settings.max_stored_bytes),
            websocket_idle: settings.websocket_idle,
            public_url: settings.public_url,
        }))
    }

    /// Counts an error that is one of limits.
    pub(crate) fn count_rejection(&self, error: &ApiError) {
        if let Some(rejection) = error.rejection() {
            self.metrics.rejected.at(rejection).inc();
        }
    }

    /// The drain of this process.
    pub fn drain(&self) -> &Drain {
        &self.drain
    }
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_current_until_a_renewal_fails_or_does_not_end() {
        let lease = LeaseStatus::default();
        assert!(!lease.is_current());
        lease.renewed();
        advance(Duration::from_secs(14)).await;
        assert!(lease.is_current());
        advance(Duration::from_secs(1)).await;
        assert!(!lease.is_current());
        lease.renewed();
        assert!(lease.is_current());
        lease.failed();
        assert!(!lease.is_current());
        advance(Duration::from_secs(3)).await;
        assert_eq!(lease.age(), Duration::from_secs(3), "a failure does not make it younger");
    }
}
