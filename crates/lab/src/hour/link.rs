//! The way from an agent's machine to the gateway, on which connections and bytes are counted.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
}

/// What has passed so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passed {
    pub(super) connections: u64,
    /// Bytes to the gateway.
    pub(super) up: u64,
    pub(super) down: u64,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) address: SocketAddr,
    counters: Arc<Counters>,
    accepting: JoinHandle<()>,
}

impl Link {
    pub(super) async fn start(gateway: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, counters) = (listener.local_addr()?, Arc::<Counters>::default());
        let counted = Arc::clone(&counters);
        let accepting = tokio::spawn(async move {
            // An error is of one connection that its client has given up.
            loop {
                if let Ok((client, _)) = listener.accept().await {
                    counted.connections.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(carry(client, gateway, Arc::clone(&counted)));
                }
            }
        });
        Ok(Self { address, counters, accepting })
    }

    pub(super) fn passed(&self) -> Passed {
        let [connections, up, down] = [&self.counters.connections, &self.counters.up, &self.counters.down]
            .map(|it| it.load(Ordering::Relaxed));
        Passed { connections, up, down }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(client: TcpStream, gateway: SocketAddr, counters: Arc<Counters>) -> io::Result<()> {
    let server = TcpStream::connect(gateway).await?;
    server.set_nodelay(true)?;
    client.set_nodelay(true)?;
    let ((client_in, client_out), (server_in, server_out)) = (client.into_split(), server.into_split());
    let up = copy(client_in, server_out, &counters.up);
    let down = copy(server_in, client_out, &counters.down);
    tokio::try_join!(up, down)?;
    Ok(())
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    passed: &AtomicU64,
) -> io::Result<()> {
    let mut piece = vec![0; 16 << 10];
    loop {
        match from.read(&mut piece).await? {
            0 => return to.shutdown().await,
            length => {
                passed.fetch_add(length as u64, Ordering::Relaxed);
                to.write_all(&piece[..length]).await?;
            }
        }
    }
}
