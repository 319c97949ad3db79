//! A connection of a client: plain TCP, or TLS over it.

use std::{
    fmt::Debug,
    io,
    net::{Ipv4Addr, SocketAddr},
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpSocket,
};

use crate::tls::TlsClient;

/// Where a server listens, and whether it speaks TLS there.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<TlsClient>,
}

pub(crate) type Stream = Box<dyn Duplex>;

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Debug + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Debug + Send + Unpin> Duplex for T {}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self { address, tls: None }
    }
}

impl Endpoint {
    /// Connects from this address, and does the handshake if there is one.
    pub(crate) async fn connect(&self, source: Ipv4Addr) -> io::Result<Stream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        let tcp = socket.connect(self.address).await?;
        tcp.set_nodelay(true)?;
        Ok(match &self.tls {
            Some(tls) => Box::new(tls.connect(tcp).await?),
            None => Box::new(tcp),
        })
    }
}
