//! TLS in the gateway's own listener: 1.2 and 1.3, HTTP/1.1 only, since held connections leave HTTP.

mod certificates;
mod challenge;
mod client;
mod handshakes;
mod provider;
mod stream;

use std::{
    io,
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use parking_lot::RwLock;
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    server::NoServerSessionStorage,
    version::{TLS12, TLS13},
};
use tokio::{
    io::{AsyncWriteExt as _, Interest},
    net::TcpStream,
    time::timeout,
};

use self::{certificates::Certificates, challenge::hello, handshakes::HandshakeTurns, provider::provider};
use super::stream::Stream;
use crate::{
    clock,
    config::TlsConfig,
    limits::{ClientName, CpuPool},
};

pub(crate) use self::{
    certificates::Certificate, challenge::ChallengeSource, client::read as client_named_by, stream::TlsStream,
};

/// A client that has not finished its handshake within this is disconnected.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

const HTTP_1_1: &[u8] = b"http/1.1";

/// What makes TLS connections of TCP connections. What it serves can be replaced at any time; connections that were made
/// before stay as they are.
#[derive(Debug)]
pub struct Tls {
    current: RwLock<Current>,
    /// Where answers to the challenges of an authority come from, if there is one.
    challenges: OnceLock<Arc<dyn ChallengeSource>>,
    turns: HandshakeTurns,
    /// The threads of handshakes: those who only say hello must not keep the processors from those who are served.
    threads: CpuPool,
}

/// What is served now.
#[derive(Debug)]
struct Current {
    settings: Arc<ServerConfig>,
    served: Arc<Certificates>,
    config: TlsConfig,
    /// What the authority has issued.
    issued: Option<Certificate>,
}

impl Tls {
    /// Fails if a certificate can't be read or does not fit its key.
    pub fn new(config: &TlsConfig) -> anyhow::Result<Self> {
        Ok(Self {
            current: RwLock::new(Current::new(config.clone(), None)?),
            challenges: OnceLock::new(),
            turns: HandshakeTurns::default(),
            threads: CpuPool::start("handshakes")?,
        })
    }

    /// Reads the certificates again. If that fails, what was served before is served on.
    pub(crate) fn reload(&self, config: &TlsConfig) -> anyhow::Result<()> {
        let issued = self.current.read().issued.clone();
        *self.current.write() = Current::new(config.clone(), issued)?;
        Ok(())
    }

    /// Serves what an authority has issued. Whether it was not served before.
    pub(crate) fn serve_issued(&self, issued: Certificate) -> bool {
        let config = {
            let current = self.current.read();
            if current.issued.as_ref().is_some_and(|served| served.is_same(&issued)) {
                return false;
            }
            current.config.clone()
        };
        match Current::new(config, Some(issued)) {
            Ok(new) => {
                *self.current.write() = new;
                true
            }
            Err(error) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "a new certificate can't be served beside the others"
                );
                false
            }
        }
    }

    /// Challenges of an authority are answered from here.
    pub(crate) fn answer_challenges(&self, source: Arc<dyn ChallengeSource>) {
        // Once: there is one authority.
        drop(self.challenges.set(source));
    }

    /// Days until the first certificate expires; negative if one has.
    pub(crate) fn days_left(&self) -> Option<f64> {
        let served = Arc::clone(&self.current.read().served);
        served.iter().map(|certificate| days_until(certificate.expires_at())).min_by(f64::total_cmp)
    }

    /// What is served, for the log.
    pub(crate) fn describe(&self) -> String {
        let served = Arc::clone(&self.current.read().served);
        let describe = served.iter().map(|certificate| {
            format!("{} ({:.0} days left)", certificate.names(), days_until(certificate.expires_at()))
        });
        describe.collect::<Vec<_>>().join("; ")
    }

    /// Does the handshake; `None` if that failed, or all that the client wanted was an answer to a challenge.
    pub(crate) async fn accept(
        self: Arc<Self>,
        tcp: TcpStream,
        network: IpAddr,
    ) -> Option<(Stream, Option<ClientName>)> {
        let _turn = self.turns.next(network).await?;
        let handshake = timeout(HANDSHAKE_TIMEOUT, Arc::clone(&self).handshake(tcp));
        let accepted = self.threads.run(handshake).await.ok()?;
        let accepted = accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match accepted {
            Ok(accepted) => accepted.map(|(stream, name)| (Stream::Tls(Box::new(stream)), name)),
            Err(error) => {
                tracing::debug!(%error, "a handshake failed");
                None
            }
        }
    }

    async fn handshake(
        self: Arc<Self>,
        tcp: TcpStream,
    ) -> io::Result<Option<(TlsStream, Option<ClientName>)>> {
        // Who has given up while it waited for its turn needs no cryptography. Nobody else ends its side before it has our keys.
        if tcp.ready(Interest::READABLE).await?.is_read_closed() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut received = Vec::new();
        if let Some(challenges) = self.challenges.get() {
            received = hello(&tcp).await?;
            if let Some(name) = challenge::name_in(&received) {
                let answer = challenges.certificate(name).await.ok_or(io::ErrorKind::NotFound)?;
                let mut stream =
                    TlsStream::accept(tcp, received, Arc::new(challenge::settings(answer)?)).await?;
                stream.shutdown().await?;
                return Ok(None);
            }
        }
        let (settings, clients) = {
            let current = self.current.read();
            (Arc::clone(&current.settings), current.config.clients.clone())
        };
        let stream = TlsStream::accept(tcp, received, settings).await?;
        let name =
            stream.certificate().zip(clients).and_then(|(shown, clients)| client::named(shown, &clients));
        Ok(Some((stream, name.map(Arc::new))))
    }
}

fn days_until(time: SystemTime) -> f64 {
    let seconds = match time.duration_since(clock::system_now()) {
        Ok(left) => left.as_secs_f64(),
        Err(over) => -over.duration().as_secs_f64(),
    };
    seconds / 86_400.0
}

impl Current {
    fn new(config: TlsConfig, issued: Option<Certificate>) -> anyhow::Result<Self> {
        let provider = provider();
        let mut served = Certificates::read(config.files(), &provider).context("[tls]")?;
        served.extend(issued.clone());
        let served = Arc::new(served);
        let builder =
            ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13, &TLS12])?;
        let mut settings = match &config.clients {
            Some(clients) => builder.with_client_cert_verifier(client::verifier(clients)?),
            None => builder.with_no_client_auth(),
        }
        .with_cert_resolver(served.clone());
        settings.alpn_protocols = vec![HTTP_1_1.to_vec()];
        settings.session_storage = Arc::new(NoServerSessionStorage {});
        if config.clients.is_none() {
            // What a client needs to resume is in its ticket, and nothing in our memory. One with a certificate shows it each time:
            // it may have expired, or its authority may be gone.
            settings.ticketer = aws_lc_rs::Ticketer::new()?;
        } else {
            settings.send_tls13_tickets = 0;
        }
        Ok(Self { settings: Arc::new(settings), served, config, issued })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use rustls::{ClientConfig, ClientConnection, RootCertStore};
    use tokio::{io::AsyncReadExt as _, net::TcpListener, time::sleep};

    use super::*;

    /// What is said to a client that says hello, and ends its side after that if it `gives_up`. There is no certificate, so all
    /// that can be said is an alert.
    async fn said_to(gives_up: bool) -> Vec<u8> {
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let client = builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let name = "gateway.test".try_into().unwrap();
        let mut hello = Vec::new();
        ClientConnection::new(Arc::new(client), name).unwrap().write_tls(&mut hello).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        stream.write_all(&hello).await.unwrap();
        if gives_up {
            stream.shutdown().await.unwrap();
        }
        let (accepted, address) = listener.accept().await.unwrap();
        while gives_up && !accepted.ready(Interest::READABLE).await.unwrap().is_read_closed() {
            sleep(Duration::from_millis(1)).await;
        }
        let tls = Arc::new(Tls::new(&TlsConfig::default()).unwrap());
        assert!(tls.accept(accepted, address.ip()).await.is_none());
        let mut said = Vec::new();
        // It may be reset: nobody has read its hello.
        drop(stream.read_to_end(&mut said).await);
        said
    }

    #[tokio::test]
    async fn who_has_given_up_before_its_turn_costs_no_handshake() {
        assert!(!said_to(false).await.is_empty());
        assert!(said_to(true).await.is_empty());
    }
}
