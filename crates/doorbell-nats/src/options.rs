//! What can be configured when the doorbell is opened.

use std::path::PathBuf;

use countersign_core::metrics::RingMetrics;

#[derive(Debug, Clone)]
pub struct Options {
    /// `nats://host:port` of every server of the NATS cluster. Servers that these name are not used.
    pub urls: Vec<String>,
    /// Keeps clusters apart that use one NATS: the nodes of one cell hear each other and nobody else.
    pub cell: String,
    /// A file with one line, a token, or with two, a user and a password. It is read for each connection, so it can be
    /// replaced while the gateway runs. `None` where NATS asks for nothing.
    pub credentials: Option<PathBuf>,
    /// A PEM file with the certificates of the authorities that may sign the server's certificate. If it is set,
    /// every connection is encrypted and the server's name is verified.
    pub root_certificates: Option<PathBuf>,
    /// PEM files of a certificate and of its key, for servers that ask for one. Only with root certificates.
    pub client_certificate: Option<ClientCertificate>,
    /// Whether connections to other machines may be unencrypted. Otherwise they are refused.
    pub allow_plain: bool,
    /// Where the doorbell counts what it does.
    pub metrics: RingMetrics,
}

/// The files that this node identifies itself with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The cell of a cluster that has its NATS for itself.
pub const DEFAULT_CELL: &str = "main";

/// Characters of the name of a cell.
pub const MAX_CELL: usize = 64;

impl Options {
    /// The defaults, for these servers.
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            urls: urls.into_iter().map(Into::into).collect(),
            cell: DEFAULT_CELL.to_owned(),
            credentials: None,
            root_certificates: None,
            client_certificate: None,
            allow_plain: false,
            metrics: RingMetrics::default(),
        }
    }
}
