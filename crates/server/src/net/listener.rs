//! Accepts connections, as many as there are file descriptors for, and serves them until they end.

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use bytes::Bytes;
use countersign_core::metrics::Counter;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::connection;
use crate::shutdown::{DRAIN_TIMEOUT, Drain};

/// A service and its limit of connections.
#[derive(Debug, Clone)]
pub struct Service {
    pub router: Router,
    pub max_connections: usize,
    /// The whole HTTP answer to a connection beyond the limit.
    pub busy_answer: Bytes,
    /// What to do when the limit is reached, for the log.
    pub at_limit: &'static str,
    /// Counts the connections beyond the limit.
    pub rejected: Counter,
}

/// Serves until `drain` begins, and then for as long as connections need, but not longer than [`DRAIN_TIMEOUT`].
pub async fn serve(listener: TcpListener, service: Service, drain: Drain) {
    let permits = Arc::new(Semaphore::new(service.max_connections));
    let mut connections = JoinSet::new();
    let mut warned = false;
    loop {
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
            connections.spawn(async move {
                connection::serve(stream, address, router, drain).await;
                drop(permit);
            });
        } else {
            if !warned {
                let limit = service.max_connections;
                tracing::warn!(limit, "connection limit reached: {}", service.at_limit);
                warned = true;
            }
            service.rejected.inc();
            reject(stream, service.busy_answer.clone());
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
