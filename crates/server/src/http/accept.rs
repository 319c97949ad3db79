//! Accepts connections, as many as there are files for, and sees them to their end.

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::connection;
use crate::app::{DRAIN_TIME, Drain};

/// Where a connection comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

impl Peer {
    /// The address, or the /64 of an IPv6 address, of which one person has as many as they like.
    pub(crate) fn network(self) -> IpAddr {
        match self.0.ip() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            v4 @ IpAddr::V4(_) => v4,
        }
    }
}

/// Files that connections must leave for everything else: the store, the log, the listener.
const OTHER_FILES: u64 = 500;

/// How many connections this process can have open.
pub fn most_connections() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(1 << 20);
    usize::try_from(files.saturating_sub(OTHER_FILES).max(files / 2))
        .unwrap_or(usize::MAX)
        .min(Semaphore::MAX_PERMITS)
}

/// What a client gets when there is no file left for it: a whole answer, and the connection is closed.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\n\
content-type: application/json\r\ncontent-length: 125\r\n\r\n\
{\"code\":\"PROTO_ERR_UNAVAILABLE\",\"message\":\"The gateway can't answer for this now; retry with the same ids.\",\"retryable\":true}";

/// Serves until `drain` begins, and then for as long as connections need, but not longer than [`DRAIN_TIME`].
pub async fn serve(listener: TcpListener, router: Router, drain: Drain, most: usize) {
    let seats = Arc::new(Semaphore::new(most));
    let mut connections = JoinSet::new();
    let mut told_full = false;
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
        if let Ok(seat) = Arc::clone(&seats).try_acquire_owned() {
            told_full = false;
            drop(stream.set_nodelay(true));
            let (router, drain) = (router.clone(), drain.clone());
            connections.spawn(async move {
                connection::serve(stream, address, router, drain).await;
                drop(seat);
            });
        } else {
            if !told_full {
                tracing::warn!(most, "no more connections: raise the limit of open files (ulimit -n)");
                told_full = true;
            }
            turn_away(stream);
        }
    }
    drop(listener);
    let finished = timeout(DRAIN_TIME, async { while connections.join_next().await.is_some() {} }).await;
    if finished.is_err() {
        tracing::warn!(left = connections.len(), "connections did not end in time and are cut");
    }
}

/// Out of files or of memory: accepting again at once would spin.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "a connection was not accepted");
    sleep(Duration::from_millis(50)).await;
}

fn turn_away(mut stream: TcpStream) {
    tokio::spawn(async move {
        drop(timeout(Duration::from_secs(1), stream.write_all(FULL)).await);
        drop(stream.shutdown().await);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_one_too_many_declares_its_own_length() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        let failure = countersign_wire::failure::Failure::Unavailable;
        let expected = countersign_wire::failure::TransportError::from(failure);
        assert_eq!(body, serde_json::to_string(&expected).unwrap());
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one() {
        let network = |text: &str| Peer(SocketAddr::new(text.parse().unwrap(), 1)).network();
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
