//! A TCP proxy that can cut, slow down or silently swallow the connections of one link.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, tcp},
    sync::watch,
    task::JoinHandle,
    time::sleep,
};

use crate::Failure;

/// What is read at once. On a slow link, one such piece passes in each delay.
const CHUNK: usize = 16 * 1_024;

/// What the proxy does with connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Pass,
    /// Resets all connections, and each new one.
    Cut,
    /// Each piece is this late.
    Slow(Duration),
    /// Accepts connections and bytes, and passes on neither these nor that the other side has closed. Connections that exist in this mode
    /// are reset when it ends: bytes are missing in them.
    HalfOpen,
}

/// One link: a port of the loopback in front of another one.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    mode: watch::Sender<Mode>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// In front of the first of these ports that accepts a connection, tried in this order for each one.
    pub(crate) async fn start(targets: Vec<u16>) -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (mode, watched) = watch::channel(Mode::Pass);
        let accepting = tokio::spawn(accept(listener, targets.into(), watched));
        Ok(Self { port, mode, accepting })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, targets: Arc<[u16]>, mode: watch::Receiver<Mode>) {
    loop {
        // An error is of one connection that its client has given up.
        if let Ok((client, _)) = listener.accept().await {
            tokio::spawn(connection(client, Arc::clone(&targets), mode.clone()));
        }
    }
}

/// Carries one connection to its end.
async fn connection(client: TcpStream, targets: Arc<[u16]>, mut mode: watch::Receiver<Mode>) {
    let mode_now = *mode.borrow_and_update();
    match mode_now {
        Mode::Cut => reset(&client),
        Mode::HalfOpen => {
            swallow(&client, &mut mode).await;
            reset(&client);
        }
        Mode::Pass | Mode::Slow(_) => {
            let Some(server) = connect(&targets).await else { return reset(&client) };
            drop((client.set_nodelay(true), server.set_nodelay(true)));
            carry(client, server, mode).await;
        }
    }
}

/// Connects to the first of these ports that accepts it.
async fn connect(targets: &[u16]) -> Option<TcpStream> {
    for target in targets {
        if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, *target)).await {
            return Some(server);
        }
    }
    None
}

/// Makes the peer see a reset instead of an orderly end when the connection is dropped.
fn reset(stream: &TcpStream) {
    // Fails only where the connection has ended already.
    drop(stream.set_zero_linger());
}

/// Takes everything that comes, until the mode changes.
async fn swallow(stream: &TcpStream, mode: &mut watch::Receiver<Mode>) {
    let take = async {
        let mut bytes = vec![0; CHUNK];
        loop {
            let ended = match stream.readable().await {
                Ok(()) => matches!(stream.try_read(&mut bytes), Ok(0)),
                Err(_) => true,
            };
            if ended {
                // Whoever closes its side hears nothing either.
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        () = take => {}
        _ = mode.wait_for(|mode| *mode != Mode::HalfOpen) => {}
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, mut mode: watch::Receiver<Mode>) {
    let mut watched = mode.clone();
    let broken = watched.wait_for(|mode| matches!(mode, Mode::Cut | Mode::HalfOpen));
    let ended = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let both = async {
            tokio::try_join!(
                pump(from_client, to_server, mode.clone()),
                pump(from_server, to_client, mode.clone())
            )
        };
        tokio::select! {
            carried = both => Some(carried),
            _ = broken => None,
        }
    };
    if let Some(Ok(_)) = ended {
        return;
    }
    let is_half_open = *mode.borrow() == Mode::HalfOpen;
    if ended.is_none() && is_half_open {
        let mut of_server = mode.clone();
        tokio::join!(swallow(&client, &mut mode), swallow(&server, &mut of_server));
    }
    reset(&client);
    reset(&server);
}

/// Passes bytes on in one direction, and in the end that there are no more.
async fn pump(
    mut from: tcp::ReadHalf<'_>,
    mut to: tcp::WriteHalf<'_>,
    mode: watch::Receiver<Mode>,
) -> std::io::Result<()> {
    let mut bytes = vec![0; CHUNK];
    loop {
        let count = from.read(&mut bytes).await?;
        let mode = *mode.borrow();
        if let Mode::Slow(delay) = mode {
            sleep(delay).await;
        }
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&bytes[..count]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use countersign_testkit::child_process::free_port;
    use tokio::time::{Instant, timeout};

    /// A server that returns every byte, behind a proxy that tries a port before where nobody listens.
    async fn echo_behind_a_proxy() -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    tokio::io::copy(&mut read, &mut write).await.ok();
                });
            }
        });
        Proxy::start(vec![free_port(), port]).await.unwrap()
    }

    async fn open(proxy: &Proxy) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).await.unwrap()
    }

    async fn round_trip(stream: &mut TcpStream) -> std::io::Result<u8> {
        stream.write_all(b"x").await?;
        stream.read_u8().await
    }

    #[tokio::test]
    async fn a_cut_resets_what_is_open_and_what_is_new_until_it_is_healed() {
        let proxy = echo_behind_a_proxy().await;
        let mut opened = open(&proxy).await;
        assert_eq!(round_trip(&mut opened).await.unwrap(), b'x');
        proxy.set(Mode::Cut);
        opened.read_u8().await.unwrap_err();
        round_trip(&mut open(&proxy).await).await.unwrap_err();
        proxy.set(Mode::Pass);
        assert_eq!(round_trip(&mut open(&proxy).await).await.unwrap(), b'x');
    }

    #[tokio::test]
    async fn a_half_open_link_says_nothing_until_it_is_healed() {
        let proxy = echo_behind_a_proxy().await;
        let mut opened = open(&proxy).await;
        assert_eq!(round_trip(&mut opened).await.unwrap(), b'x');
        proxy.set(Mode::HalfOpen);
        // The connection itself sees the mode a moment later.
        tokio::task::yield_now().await;
        sleep(Duration::from_millis(20)).await;
        let mut new = open(&proxy).await;
        for stream in [&mut opened, &mut new] {
            timeout(Duration::from_millis(100), round_trip(stream)).await.unwrap_err();
        }
        proxy.set(Mode::Pass);
        for stream in [&mut opened, &mut new] {
            stream.read_u8().await.unwrap_err();
        }
        assert_eq!(round_trip(&mut open(&proxy).await).await.unwrap(), b'x');
    }

    #[tokio::test]
    async fn a_slow_link_is_late_in_both_directions() {
        let proxy = echo_behind_a_proxy().await;
        proxy.set(Mode::Slow(Duration::from_millis(50)));
        let started = Instant::now();
        assert_eq!(round_trip(&mut open(&proxy).await).await.unwrap(), b'x');
        assert!(started.elapsed() >= Duration::from_millis(100), "{:?}", started.elapsed());
    }
}
