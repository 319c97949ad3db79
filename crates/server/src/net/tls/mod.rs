//! TLS in the gateway's own listener: 1.2 and 1.3, HTTP/1.1 only, since held connections leave HTTP.

mod certificates;
mod handshakes;
mod stream;

use std::{
    io,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use parking_lot::RwLock;
use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    server::NoServerSessionStorage,
    version::{TLS12, TLS13},
};
use tokio::{net::TcpStream, time::timeout};

use self::{certificates::Certificates, handshakes::HandshakeTurns};
use super::stream::Stream;
use crate::{clock, config::TlsConfig, limits::CpuPool};

pub(crate) use self::stream::TlsStream;

/// A client that has not finished its handshake within this is disconnected.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

const HTTP_1_1: &[u8] = b"http/1.1";

/// What makes TLS connections of TCP connections. What it serves can be replaced at any time; connections that were made
/// before stay as they are.
#[derive(Debug)]
pub struct Tls {
    current: RwLock<Arc<ServerConfig>>,
    served: RwLock<Arc<Certificates>>,
    turns: HandshakeTurns,
    /// The threads of handshakes: those who only say hello must not keep the processors from those who are served.
    threads: CpuPool,
}

impl Tls {
    /// Reads the certificates.
    pub fn new(config: &TlsConfig) -> anyhow::Result<Self> {
        let (current, served) = settings(config)?;
        Ok(Self {
            current: RwLock::new(Arc::new(current)),
            served: RwLock::new(served),
            turns: HandshakeTurns::default(),
            threads: CpuPool::start("handshakes")?,
        })
    }

    /// Reads the certificates again. If that fails, what was served before is served on.
    pub(crate) fn reload(&self, config: &TlsConfig) -> anyhow::Result<()> {
        let (current, served) = settings(config)?;
        *self.current.write() = Arc::new(current);
        *self.served.write() = served;
        Ok(())
    }

    /// Days until the first certificate expires; negative if one has.
    pub(crate) fn days_left(&self) -> Option<f64> {
        let served = Arc::clone(&self.served.read());
        served.iter().map(|certificate| days_until(certificate.expires_at())).min_by(f64::total_cmp)
    }

    /// What is served, for the log.
    pub(crate) fn describe(&self) -> String {
        let served = Arc::clone(&self.served.read());
        let describe = served.iter().map(|certificate| {
            format!("{} ({:.0} days left)", certificate.names(), days_until(certificate.expires_at()))
        });
        describe.collect::<Vec<_>>().join("; ")
    }

    /// Does the handshake; `None` if that failed.
    pub(crate) async fn accept(self: Arc<Self>, tcp: TcpStream, network: IpAddr) -> Option<Stream> {
        let _turn = self.turns.next(network).await?;
        let config = Arc::clone(&self.current.read());
        let handshake = timeout(HANDSHAKE_TIMEOUT, TlsStream::accept(tcp, Vec::new(), config));
        let accepted = self.threads.run(handshake).await.ok()?;
        let accepted = accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match accepted {
            Ok(stream) => Some(Stream::Tls(Box::new(stream))),
            Err(error) => {
                tracing::debug!(%error, "a handshake failed");
                None
            }
        }
    }
}

fn days_until(time: SystemTime) -> f64 {
    let seconds = match time.duration_since(clock::system_now()) {
        Ok(left) => left.as_secs_f64(),
        Err(over) => -over.duration().as_secs_f64(),
    };
    seconds / 86_400.0
}

/// Our provider; the same as everywhere in the process.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn settings(config: &TlsConfig) -> anyhow::Result<(ServerConfig, Arc<Certificates>)> {
    let provider = provider();
    let served = Arc::new(Certificates::read(config.files(), &provider).context("[tls]")?);
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13, &TLS12])?;
    let mut settings = builder.with_no_client_auth().with_cert_resolver(served.clone());
    settings.alpn_protocols = vec![HTTP_1_1.to_vec()];
    // What a client needs to resume is in its ticket, and nothing in our memory.
    settings.session_storage = Arc::new(NoServerSessionStorage {});
    settings.ticketer = aws_lc_rs::Ticketer::new()?;
    Ok((settings, served))
}
