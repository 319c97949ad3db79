//! TLS as an operator sets it.

use std::path::PathBuf;

use anyhow::bail;
use serde::Deserialize;

/// Certificates that the gateway serves.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// PEM file of a certificate and those that lead to its authority; `None` for plain HTTP.
    pub certificate: Option<PathBuf>,
    /// PEM file of its key.
    pub key: Option<PathBuf>,
    /// More of them. The one that fits the name that a client asks for is served, and the first if none does.
    pub more: Vec<CertificateFiles>,
    /// For how long browsers remember that this name speaks TLS only; 0 for not at all.
    pub hsts_days: u32,
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
        Self { certificate: None, key: None, more: Vec::new(), hsts_days: 365 }
    }
}

impl TlsConfig {
    /// Whether clients are spoken to with TLS.
    pub fn is_on(&self) -> bool {
        self.certificate.is_some()
    }

    /// All certificates, the default first.
    pub fn files(&self) -> impl Iterator<Item = CertificateFiles> {
        let first = self.certificate.clone().zip(self.key.clone());
        let first = first.map(|(certificate, key)| CertificateFiles { certificate, key });
        first.into_iter().chain(self.more.iter().cloned())
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
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
