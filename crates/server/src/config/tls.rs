//! TLS as an operator sets it.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use anyhow::bail;
use axum::http::Uri;
use countersign_wire::id::TenantId;
use serde::{Deserialize, Serialize};

/// Certificates that the gateway serves.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// Where TLS is spoken, beside plain HTTP on `listen`; `None` where that itself is TLS.
    pub listen: Option<SocketAddr>,
    /// PEM file of a certificate and those that lead to its authority; `None` for plain HTTP.
    pub certificate: Option<PathBuf>,
    /// PEM file of its key.
    pub key: Option<PathBuf>,
    /// More of them. The one that fits the name that a client asks for is served, and the first if none does.
    pub more: Vec<CertificateFiles>,
    /// Where plain HTTP is answered with the way to TLS, and with challenges of an authority; `None` for nowhere.
    pub redirect_listen: Option<SocketAddr>,
    /// An authority that issues certificates; `None` where files have them.
    pub acme: Option<AcmeConfig>,
    /// Certificates of clients; `None` where nobody asks for them.
    pub clients: Option<ClientCertificates>,
    /// For how long browsers remember that this name speaks TLS only; 0 for not at all.
    pub hsts_days: u32,
}

/// An authority that issues certificates by itself, and for which names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcmeConfig {
    #[serde(default = "lets_encrypt")]
    pub directory: String,
    pub names: Vec<String>,
    /// Whom the authority writes to, such as `mailto:ops@example.org`.
    #[serde(default)]
    pub contact: Option<String>,
    #[serde(default)]
    pub challenge: ChallengeKind,
    /// The account that the authority has given out, if it wants one.
    #[serde(default)]
    pub eab: Option<ExternalAccount>,
    /// PEM file of the authorities that sign the authority's own certificate; `None` for those of the system.
    #[serde(default)]
    pub ca: Option<PathBuf>,
}

fn lets_encrypt() -> String {
    "https://acme-v02.api.letsencrypt.org/directory".to_owned()
}

/// How the authority learns that this gateway answers for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ChallengeKind {
    /// On port 443, with TLS.
    #[default]
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01,
    /// On port 80, which `tls.redirect_listen` serves.
    #[serde(rename = "http-01")]
    Http01,
}

impl fmt::Display for ChallengeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Http01 => "http-01",
        })
    }
}

/// An account at an authority that knows its customers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalAccount {
    pub id: String,
    /// The file of its key, in base64url.
    pub key_file: PathBuf,
}

impl AcmeConfig {
    fn check(&self, redirect_listen: Option<SocketAddr>) -> anyhow::Result<()> {
        let directory: Option<Uri> = self.directory.parse().ok();
        if directory.and_then(|url| url.scheme_str().map(|scheme| scheme == "https")) != Some(true) {
            bail!("tls.acme.directory = \"{}\" is not an https address", self.directory);
        }
        if self.names.is_empty() {
            bail!(
                "tls.acme.names is empty; name what clients call this gateway, such as \"gateway.example.org\""
            );
        }
        for name in &self.names {
            if name.starts_with("*.") {
                bail!(
                    "tls.acme.names: \"{name}\" is for many names, which authorities issue by DNS only; list each name"
                );
            }
            let is_name = name.contains('.') && name.len() <= 253 && name.split('.').all(is_label);
            if !is_name || name.parse::<IpAddr>().is_ok() {
                bail!(
                    "tls.acme.names: \"{name}\" is not a name of the DNS in lower case, such as \"gateway.example.org\""
                );
            }
        }
        if let Some(contact) = self.contact.as_deref().filter(|contact| !contact.starts_with("mailto:")) {
            bail!("tls.acme.contact = \"{contact}\" must begin with mailto:");
        }
        if self.challenge == ChallengeKind::Http01 && redirect_listen.is_none() {
            bail!(
                "tls.acme.challenge = \"http-01\" needs tls.redirect_listen = \"0.0.0.0:80\", where the authority asks"
            );
        }
        Ok(())
    }
}

fn is_label(label: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !label.is_empty() && label.len() <= 63 && label.bytes().all(is_part)
}

/// Which certificates of clients are accepted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCertificates {
    /// PEM file of the authorities that vouch for clients.
    pub ca: PathBuf,
    /// Whether who has none is not served at all.
    #[serde(default)]
    pub required: bool,
    /// The tenants whose clients they may vouch for; empty for all.
    #[serde(default)]
    pub tenants: Vec<TenantId>,
}

/// A certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            listen: None,
            certificate: None,
            key: None,
            more: Vec::new(),
            redirect_listen: None,
            acme: None,
            clients: None,
            hsts_days: 365,
        }
    }
}

impl TlsConfig {
    /// Whether clients are spoken to with TLS.
    pub fn is_on(&self) -> bool {
        self.certificate.is_some() || self.acme.is_some()
    }

    /// All certificates, the default first.
    pub fn files(&self) -> impl Iterator<Item = CertificateFiles> {
        let first = self.certificate.clone().zip(self.key.clone());
        let first = first.map(|(certificate, key)| CertificateFiles { certificate, key });
        first.into_iter().chain(self.more.iter().cloned())
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.acme.as_ref().map_or(Ok(()), |acme| acme.check(self.redirect_listen))?;
        if self.clients.is_some() && !self.is_on() {
            bail!("[tls.clients] needs tls.certificate or [tls.acme]: certificates of clients come with TLS");
        }
        if self.listen.is_some() && !self.is_on() {
            bail!("tls.listen needs tls.certificate or [tls.acme]: there is no certificate to serve there");
        }
        if self.redirect_listen.is_some() && !self.is_on() {
            bail!("tls.redirect_listen needs tls.certificate or [tls.acme]: there is nowhere to redirect to");
        }
        match (&self.certificate, &self.key) {
            (Some(_), None) => {
                bail!("tls.certificate is set and tls.key is missing; name the file of its key")
            }
            (None, Some(_)) => {
                bail!("tls.key is set and tls.certificate is missing; name the file of the certificate")
            }
            (None, None) if !self.more.is_empty() => {
                bail!(
                    "tls.more is set and tls.certificate is missing; name the one that is served by default there"
                )
            }
            _ => Ok(()),
        }
    }
}
