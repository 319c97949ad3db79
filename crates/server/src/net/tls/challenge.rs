//! The challenge of an authority that connects with TLS (RFC 8737): it offers a protocol of its own, and is shown a certificate
//! that only this gateway can make.

use std::{future::Future, io, pin::Pin, sync::Arc};

use rustls::{
    ServerConfig,
    server::{Acceptor, ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use tokio::net::TcpStream;

use super::provider::provider;

const ACME_TLS: &[u8] = b"acme-tls/1";

/// What the first record of a client begins with.
const HANDSHAKE: u8 = 22;

/// Bytes of the head of a record.
const HEAD: usize = 5;

/// The hello of an authority fits into one record; that of a browser may take two.
const MAX_HELLO: usize = HEAD + (16 << 10);

/// Has the answers to challenges.
pub(crate) trait ChallengeSource: std::fmt::Debug + Send + Sync {
    /// The certificate for a name; `None` if no challenge is open for it.
    fn certificate(
        &self,
        name: String,
    ) -> Pin<Box<dyn Future<Output = Option<Arc<CertifiedKey>>> + Send + '_>>;
}

/// Reads the first record of a client, or what there is of it where it is not TLS.
pub(super) async fn hello(tcp: &TcpStream) -> io::Result<Vec<u8>> {
    let mut received = Vec::with_capacity(2 << 10);
    loop {
        if received.first().is_some_and(|kind| *kind != HANDSHAKE) {
            return Ok(received);
        }
        if let Some(head) = received.first_chunk::<HEAD>() {
            let [_, _, _, high, low] = *head;
            let whole = HEAD + usize::from(u16::from_be_bytes([high, low]));
            if received.len() >= whole.min(MAX_HELLO) {
                return Ok(received);
            }
        }
        tcp.readable().await?;
        match tcp.try_read_buf(&mut received) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// The name that an authority asks for; `None` if this is somebody else.
pub(super) fn name_in(received: &[u8]) -> Option<String> {
    // Most clients are told apart by this alone.
    if !received.windows(ACME_TLS.len()).any(|window| window == ACME_TLS) {
        return None;
    }
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut &received[..]).ok()?;
    let accepted = acceptor.accept().ok().flatten()?;
    let hello = accepted.client_hello();
    let mut offered = hello.alpn()?;
    let is_challenge = offered.next() == Some(ACME_TLS) && offered.next().is_none();
    is_challenge.then(|| hello.server_name().map(str::to_ascii_lowercase)).flatten()
}

/// What is said to an authority.
pub(super) fn settings(answer: Arc<CertifiedKey>) -> io::Result<ServerConfig> {
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&TLS13, &TLS12]).map_err(io::Error::other)?;
    let mut settings = builder.with_no_client_auth().with_cert_resolver(Arc::new(Always(answer)));
    settings.alpn_protocols = vec![ACME_TLS.to_vec()];
    Ok(settings)
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}
