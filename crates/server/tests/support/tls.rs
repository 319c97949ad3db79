//! An authority of certificates for tests, and a client that trusts it.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType,
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    runtime,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore, SupportedProtocolVersion,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName},
        version::{TLS12, TLS13},
    },
};

/// The name in the certificate of a gateway under test.
pub const NAME: &str = "gateway.test";

/// An authority whose certificates nobody else trusts.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes a certificate for `name` and its key; returns the files.
    pub fn issue(&self, folder: &Path, file: &str, name: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.0).unwrap();
        let files = (folder.join(format!("{file}.pem")), folder.join(format!("{file}.key")));
        // The key first, and each at once: a gateway may read them at any moment.
        write(&files.1, &pem("PRIVATE KEY", &key.serialize_der()));
        write(&files.0, &pem("CERTIFICATE", certificate.der()));
        files
    }

    /// A certificate of a client, and the file that it is in.
    pub fn client_certificate(&self, folder: &Path, file: &str, client: &ClientCertificate<'_>) -> Shown {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.subject_alt_names =
            client.names.iter().map(|name| SanType::URI((*name).try_into().unwrap())).collect();
        parameters.extended_key_usages = vec![client.purpose.clone()];
        if client.has_expired {
            parameters.not_after = rcgen::date_time_ymd(2020, 1, 1);
        }
        let certificate = parameters.signed_by(&key, &self.0).unwrap();
        let file = folder.join(format!("{file}.pem"));
        write(&file, &pem("CERTIFICATE", certificate.der()));
        Shown { file, certificate: certificate.der().to_vec(), key: key.serialize_der() }
    }

    /// A client that trusts this authority, and shows a certificate.
    pub fn showing(&self, shown: &Shown) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(shown.key.clone()));
        let chain = vec![CertificateDer::from(shown.certificate.clone())];
        Arc::new(builder.with_client_auth_cert(chain, key).unwrap())
    }

    /// The settings of a gateway with a certificate for [`NAME`].
    pub fn settings(&self, folder: &Path) -> String {
        let (certificate, key) = self.issue(folder, "gateway", NAME);
        format!("[tls]\ncertificate = \"{}\"\nkey = \"{}\"\n", certificate.display(), key.display())
    }

    /// Writes the authority's own certificate; returns the file.
    pub fn write_to(&self, folder: &Path) -> PathBuf {
        let file = folder.join("authority.pem");
        write(&file, &pem("CERTIFICATE", self.0.der()));
        file
    }

    /// What trusts this authority alone.
    pub fn client(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_protocol_versions(versions).unwrap().with_root_certificates(roots);
        let mut client = builder.with_no_client_auth();
        client.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Arc::new(client)
    }

    /// What a browser does.
    pub fn any_version(&self) -> Arc<ClientConfig> {
        self.client(&[&TLS12, &TLS13], &["h2", "http/1.1"])
    }
}

/// What a certificate of a client says.
pub struct ClientCertificate<'a> {
    pub names: &'a [&'a str],
    pub purpose: ExtendedKeyUsagePurpose,
    pub has_expired: bool,
}

impl<'a> ClientCertificate<'a> {
    pub fn of(names: &'a [&'a str]) -> Self {
        Self { names, purpose: ExtendedKeyUsagePurpose::ClientAuth, has_expired: false }
    }
}

/// What a client shows.
pub struct Shown {
    pub file: PathBuf,
    pub certificate: Vec<u8>,
    key: Vec<u8>,
}

/// At once, as a careful tool would.
fn write(file: &Path, text: &str) {
    let new = file.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, file).unwrap();
}

pub fn pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// Connects to a gateway that has a certificate for `name`.
pub async fn connect(
    client: &Arc<ClientConfig>,
    address: SocketAddr,
    name: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(Arc::clone(client)).connect(name, stream).await
}

/// Speaks plainly with tests and TLS with gateways: what a load balancer does, too, each connection goes to another node
/// than the one before. Returns the address that stands for all of them.
pub fn front_of(nodes: Vec<SocketAddr>, client: Option<Arc<ClientConfig>>) -> SocketAddr {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    pass_all_on(listener, nodes, client);
    address
}

/// The same, on an address that others know already.
pub fn pass_all_on(
    listener: std::net::TcpListener,
    nodes: Vec<SocketAddr>,
    client: Option<Arc<ClientConfig>>,
) {
    listener.set_nonblocking(true).unwrap();
    thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            for node in nodes.iter().cycle() {
                let (client_side, _) = listener.accept().await.unwrap();
                tokio::spawn(pass_on(client_side, *node, client.clone()));
            }
        });
    });
}

async fn pass_on(mut client: TcpStream, node: SocketAddr, tls: Option<Arc<ClientConfig>>) {
    drop(client.set_nodelay(true));
    match tls {
        Some(tls) => {
            if let Ok(mut there) = connect(&tls, node, NAME).await {
                drop(copy_bidirectional(&mut client, &mut there).await);
            }
        }
        None => {
            if let Ok(mut there) = TcpStream::connect(node).await {
                drop(there.set_nodelay(true));
                drop(copy_bidirectional(&mut client, &mut there).await);
            }
        }
    }
}
