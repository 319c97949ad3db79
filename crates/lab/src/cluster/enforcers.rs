//! The enforcers' WebSockets, each on a node of its own, and what arrived on them.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::{task::JoinSet, time::sleep};

use super::load::Accepted;
use crate::{
    Failure,
    clients::{
        messages::{self, Role},
        websocket::WebSocket,
    },
    servers::gateway::Gateway,
    stopwatch::Stopwatch,
};

const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// What enforcers have received.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    /// How often each decision arrived, by exchange.
    pub(super) times: HashMap<String, u64>,
    /// Decisions that arrived on another enforcer's WebSocket than that of the exchange.
    pub(super) misdirected: u64,
    /// WebSockets that ended while the load ran, by reason.
    pub(super) broken: BTreeMap<String, u64>,
}

pub(super) struct Enforcers {
    delivered: Arc<Mutex<Delivered>>,
    readers: JoinSet<()>,
}

/// What a reader needs of a pushed message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pushed<'a> {
    msg_type: &'a str,
    request_id: &'a str,
}

/// The node that has the WebSocket of this enforcer; [`super::load`] submits and decides on others.
fn node_of(enforcer: u64, nodes: usize) -> usize {
    (usize::try_from(enforcer).unwrap_or_default() + 2) % nodes
}

impl Enforcers {
    pub(super) async fn open(nodes: &[Gateway], count: u64) -> Result<Self, Failure> {
        let delivered = Arc::default();
        let mut readers = JoinSet::new();
        for enforcer in 0..count {
            let (node, id) = (&nodes[node_of(enforcer, nodes.len())], messages::enforcer(enforcer));
            let handshake = messages::open_websocket(&node.enforcer_key, Role::Enforcer, &id);
            let socket = WebSocket::open(node.address, &handshake).await?;
            let enforcer = Enforcer { address: node.address, handshake, quoted_id: format!("\"{id}\"") };
            readers.spawn(enforcer.listen(socket, Arc::clone(&delivered)));
        }
        Ok(Self { delivered, readers })
    }

    /// Waits until every accepted decision has arrived, or until the time is up.
    pub(super) async fn wait_for(&self, accepted: &Accepted, limit: Duration) {
        let watch = Stopwatch::start();
        let missing = || {
            let delivered = self.delivered.lock();
            accepted.decided.iter().any(|request| !delivered.times.contains_key(request))
        };
        while watch.elapsed() < limit && missing() {
            sleep(Duration::from_millis(100)).await;
        }
    }

    pub(super) async fn close(mut self) -> Delivered {
        self.readers.shutdown().await;
        std::mem::take(&mut *self.delivered.lock())
    }
}

/// One of the enforcers, which connects again when its WebSocket ends.
struct Enforcer {
    address: SocketAddr,
    handshake: String,
    /// As it stands in a message for it.
    quoted_id: String,
}

impl Enforcer {
    async fn listen(self, first: WebSocket, delivered: Arc<Mutex<Delivered>>) {
        let mut socket = Ok(first);
        loop {
            let error = match socket {
                Ok(socket) => self.read(socket, &delivered).await,
                Err(error) => error,
            };
            *delivered.lock().broken.entry(error.to_string()).or_default() += 1;
            sleep(RECONNECT_DELAY).await;
            socket = WebSocket::open(self.address, &self.handshake).await;
        }
    }

    /// Acknowledges each decision, until the WebSocket ends.
    async fn read(&self, mut socket: WebSocket, delivered: &Mutex<Delivered>) -> io::Error {
        let quoted_id = self.quoted_id.as_bytes();
        loop {
            let message = match socket.next().await {
                Ok(message) => message,
                // Nothing has arrived for a while.
                Err(error) if error.kind() == io::ErrorKind::TimedOut => continue,
                Err(error) => return error,
            };
            let Ok(pushed) = serde_json::from_slice::<Pushed<'_>>(message) else { continue };
            if pushed.msg_type != "decision.deliver" {
                continue;
            }
            let is_for_this = message.windows(quoted_id.len()).any(|bytes| bytes == quoted_id);
            let (request, acknowledgement) =
                (pushed.request_id.to_owned(), messages::acknowledgement(pushed.request_id, message));
            {
                let mut delivered = delivered.lock();
                delivered.misdirected += u64::from(!is_for_this);
                *delivered.times.entry(request).or_default() += 1;
            }
            let Ok(acknowledgement) = acknowledgement else { continue };
            if let Err(error) = socket.send(&acknowledgement).await {
                return error;
            }
        }
    }
}
