//! Accepts connections, as many as there are file descriptors for, and serves them until they end.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use bytes::Bytes;
use countersign_core::metrics::{Counter, Gauge};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    connection::{self, Admitted},
    proxy_protocol,
    stream::Stream,
    tls::Tls,
};
use crate::{
    config::ProxyHeader,
    limits::{ClientAddress, Peer},
    live::Live,
    shutdown::{DRAIN_TIMEOUT, Drain},
};

/// A service and its limit of connections.
#[derive(Debug, Clone)]
pub struct Service {
    pub router: Router,
    pub front: Arc<Front>,
    pub max_connections: usize,
    /// The whole HTTP answer to a plain connection beyond the limit.
    pub busy_answer: Bytes,
    /// What to do when the limit is reached, for the log.
    pub at_limit: &'static str,
    /// Counts the connections beyond the limit.
    pub rejected: Counter,
    /// The connections that are open.
    pub open: Gauge,
}

/// What comes before HTTP.
#[derive(Debug, Default)]
pub struct Front {
    /// `None` for plain HTTP.
    pub tls: Option<Arc<Tls>>,
    /// Who the trusted proxies are.
    pub live: Live,
}

impl Front {
    /// Learns who connects, and does the handshake. `None` if it is not served.
    async fn admit(self: Arc<Self>, mut tcp: TcpStream, address: SocketAddr) -> Option<Admitted> {
        let is_tls = self.tls.is_some();
        let mut peer = Peer { address, is_direct: is_tls, is_tls };
        let live = self.live.current();
        if live.proxies.header == ProxyHeader::ProxyProtocol {
            // Whoever is not a proxy could say that it is anybody.
            let read = match live.proxies.trusts(address.ip()) {
                true => proxy_protocol::read(&mut tcp).await,
                false => Err(io::ErrorKind::PermissionDenied.into()),
            };
            match read {
                Ok(Some(client)) => peer = Peer { address: client, is_direct: true, is_tls },
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, "a connection did not begin as the PROXY protocol says");
                    return None;
                }
            }
        }
        let Some(tls) = &self.tls else {
            return Some(Admitted { stream: Stream::Plain(tcp), peer, name: None });
        };
        let (stream, name) = Arc::clone(tls).accept(tcp, ClientAddress(peer.address).network()).await?;
        Some(Admitted { stream, peer, name })
    }
}

/// Serves until `drain` begins, and then for as long as connections need, but not longer than [`DRAIN_TIMEOUT`].
pub async fn serve(listener: TcpListener, service: Service, drain: Drain) {
    let permits = Arc::new(Semaphore::new(service.max_connections));
    let mut connections = JoinSet::new();
    let mut warned = false;
    // Another listener may count into the same gauge.
    let mut counted = 0;
    loop {
        let now_open = i64::try_from(connections.len()).unwrap_or(i64::MAX);
        service.open.inc_by(now_open - counted);
        counted = now_open;
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = drain.begun() => break,
            Some(_) = connections.join_next() => continue,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
            warned = false;
            drop(stream.set_nodelay(true));
            let (router, drain) = (service.router.clone(), drain.clone());
            // Boxed, so that a connection that is served does not carry what came before.
            let admitted = Box::pin(Arc::clone(&service.front).admit(stream, address));
            connections.spawn(async move {
                if let Some(admitted) = admitted.await {
                    connection::serve(admitted, router, drain).await;
                }
                drop(permit);
            });
        } else {
            if !warned {
                let limit = service.max_connections;
                tracing::warn!(limit, "connection limit reached: {}", service.at_limit);
                warned = true;
            }
            service.rejected.inc();
            if service.front.tls.is_none() {
                reject(stream, service.busy_answer.clone());
            }
        }
    }
    drop(listener);
    let finished = timeout(DRAIN_TIMEOUT, async { while connections.join_next().await.is_some() {} }).await;
    if finished.is_err() {
        tracing::warn!(
            left = connections.len(),
            "connections did not end within the drain timeout and are closed"
        );
    }
}

/// Out of file descriptors or memory: accepting again at once would spin.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "a connection was not accepted");
    sleep(Duration::from_millis(50)).await;
}

/// Answers that the gateway is busy, and closes the connection.
fn reject(mut stream: TcpStream, answer: Bytes) {
    tokio::spawn(async move {
        drop(timeout(Duration::from_secs(1), stream.write_all(&answer)).await);
        drop(stream.shutdown().await);
    });
}
