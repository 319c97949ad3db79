//! What every handler shares.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use countersign_core::{
    Gateway,
    model::{
        channels::{LEASE, NodeId},
        pairing::CodeKey,
    },
};
use countersign_wire::id::GatewayId;
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

use crate::{
    auth::Keys,
    http::{accept::most_connections, rates::Rates, shares::Shares},
    presence::PresenceLog,
    secrets::Secret,
};

/// Bytes of what clients send that may be in memory at once.
const BODIES: usize = 256 << 20;

/// Reads for pushing that go on at once. Fewer than the store's readers: a thousand channels with a backlog must not
/// hold up whoever asks for something.
const PUSH_READS: usize = 3;

/// Everything that handlers share.
#[derive(Debug)]
pub struct App {
    pub(crate) gateway: Gateway,
    pub(crate) gateway_id: GatewayId,
    /// This run of this process.
    pub(crate) node: NodeId,
    pub(crate) secret: Secret,
    pub(crate) codes: CodeKey,
    pub(crate) keys: Keys,
    pub(crate) rates: Rates,
    pub(crate) presence: PresenceLog,
    /// Memory for what clients send.
    pub(crate) bodies: Shares,
    /// Connections that are held open for long.
    pub(crate) held: Shares,
    /// Turns at reading what is to be pushed.
    pub(crate) push_reads: Semaphore,
    pub(crate) drain: Drain,
    /// Whether this node's lease in the store was renewed in time.
    pub(crate) lease: Lease,
}

/// When this node last wrote to the store that it is alive.
#[derive(Debug, Default)]
pub(crate) struct Lease(Mutex<Option<Instant>>);

impl Lease {
    pub(crate) fn renewed(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// A node that can't write for as long as a lease lasts is of no use.
    pub(crate) fn holds(&self) -> bool {
        let renewed = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        renewed.is_some_and(|renewed| renewed.elapsed() < LEASE)
    }
}

pub(crate) type Shared = Arc<App>;

impl App {
    /// An application on this gateway.
    pub fn new(gateway: Gateway, gateway_id: GatewayId, secret: Secret, rates: Rates) -> Arc<Self> {
        Arc::new(Self {
            keys: Keys::new(gateway.clone()),
            presence: PresenceLog::start(gateway.clone()),
            codes: secret.code_key(),
            bodies: Shares::new(BODIES),
            held: Shares::new(most_connections()),
            push_reads: Semaphore::new(PUSH_READS),
            drain: Drain::default(),
            lease: Lease::default(),
            node: NodeId(crate::http::answer::new_msg_id().to_string()),
            gateway,
            gateway_id,
            secret,
            rates,
        })
    }

    /// Whether the gateway is told to stop.
    pub fn drain(&self) -> &Drain {
        &self.drain
    }
}

/// Whether the gateway is told to stop. Whoever holds a connection listens to it.
#[derive(Debug, Clone)]
pub struct Drain(watch::Sender<bool>);

impl Default for Drain {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Drain {
    /// Tells everybody to come to an end.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Whether it has begun.
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when it begins.
    pub async fn begun(&self) {
        // The sender lives as long as `self`.
        drop(self.0.subscribe().wait_for(|begun| *begun).await);
    }
}

/// How long connections get to come to an end.
pub const DRAIN_TIME: Duration = Duration::from_secs(10);
