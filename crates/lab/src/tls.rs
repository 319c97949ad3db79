//! Certificates of servers under test, and clients that trust them.

use std::{
    fmt, fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, HandshakeKind, RootCertStore,
        client::Resumption,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
        version::TLS13,
    },
};

use crate::Failure;

/// An authority that nobody trusts but the clients made here. Its keys are ECDSA, P-256.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate for the loopback and its key, as PEM files.
#[derive(Debug, Clone)]
pub(crate) struct CertificateFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Tickets that a client keeps, if it does.
const TICKETS: usize = 256;

/// Makes TLS connections of TCP connections. It resumes no session unless it is made to: each connection stands for a client of its own.
#[derive(Clone)]
pub(crate) struct TlsClient {
    connector: TlsConnector,
    /// Connections whose session was resumed.
    pub(crate) resumed: Arc<AtomicU64>,
}

impl Authority {
    pub(crate) fn new() -> Result<Self, Failure> {
        let mut parameters = CertificateParams::new(Vec::new())?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?))
    }

    /// Writes a new certificate to this folder, in place of the one that was there.
    pub(crate) fn issue(&self, folder: &Path) -> Result<CertificateFiles, Failure> {
        let key = KeyPair::generate()?;
        let parameters = CertificateParams::new(vec![Ipv4Addr::LOCALHOST.to_string()])?;
        let certificate = parameters.signed_by(&key, &self.0)?;
        let files = CertificateFiles::in_folder(folder);
        write(&files.key, "PRIVATE KEY", key.serialized_der())?;
        write(&files.certificate, "CERTIFICATE", certificate.der())?;
        Ok(files)
    }

    /// Writes the authority's own certificate.
    pub(crate) fn write_to(&self, file: &Path) -> Result<(), Failure> {
        Ok(write(file, "CERTIFICATE", self.0.der())?)
    }

    pub(crate) fn client(&self) -> Result<TlsClient, Failure> {
        TlsClient::new(self.0.der().clone())
    }
}

impl CertificateFiles {
    /// As [`Authority::issue`] writes them.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { certificate: folder.join("server.pem"), key: folder.join("server.key") }
    }

    pub(crate) fn read(&self) -> Result<CertificateDer<'static>, Failure> {
        Ok(CertificateDer::from_pem_file(&self.certificate)?)
    }

    /// The section of a gateway's configuration that serves it; `listen` is where, beside plain HTTP.
    pub(crate) fn section(&self, listen: Option<SocketAddr>) -> String {
        let listen = listen.map(|listen| format!("listen = \"{listen}\"\n")).unwrap_or_default();
        let Self { certificate, key } = self;
        format!("[tls]\n{listen}certificate = \"{}\"\nkey = \"{}\"\n", certificate.display(), key.display())
    }
}

impl TlsClient {
    /// What trusts the authority of this file.
    pub(crate) fn trusting(file: &Path) -> Result<Self, Failure> {
        Self::new(CertificateDer::from_pem_file(file)?)
    }

    /// One client that comes back: it keeps its tickets.
    pub(crate) fn resuming(authority: &Authority) -> Result<Self, Failure> {
        Self::with(authority.0.der().clone(), Resumption::in_memory_sessions(TICKETS))
    }

    fn new(authority: CertificateDer<'static>) -> Result<Self, Failure> {
        Self::with(authority, Resumption::disabled())
    }

    fn with(authority: CertificateDer<'static>, resumption: Resumption) -> Result<Self, Failure> {
        let mut roots = RootCertStore::empty();
        roots.add(authority)?;
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_protocol_versions(&[&TLS13])?.with_root_certificates(roots);
        let mut config = builder.with_no_client_auth();
        config.resumption = resumption;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), resumed: Arc::default() })
    }

    pub(crate) async fn connect(&self, tcp: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
        let stream = self.connector.connect(name, tcp).await?;
        if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
            self.resumed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(stream)
    }
}

impl TlsClient {
    /// The certificate that a server shows to whoever connects now.
    pub(crate) async fn certificate_of(&self, server: SocketAddr) -> io::Result<CertificateDer<'static>> {
        let stream = self.connect(TcpStream::connect(server).await?).await?;
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        shown
            .map(|shown| shown.clone().into_owned())
            .ok_or_else(|| io::Error::other("no certificate was shown"))
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsClient")
    }
}

/// In one step: a gateway may read the file at any moment.
fn write(file: &Path, label: &str, der: &[u8]) -> io::Result<()> {
    let new = file.with_extension("new");
    fs::write(&new, format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der)))?;
    fs::rename(new, file)
}
