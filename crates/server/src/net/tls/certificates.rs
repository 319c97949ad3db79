//! Certificates and their keys, read from PEM files, and which of them a client is shown.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, bail};
use rustls::{
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use x509_cert::{
    Certificate as X509,
    der::Decode as _,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

use super::provider::provider;
use crate::{clock, config::CertificateFiles};

/// A certificate that can be served.
#[derive(Debug, Clone)]
pub(crate) struct Certificate {
    certified: Arc<CertifiedKey>,
    /// The names that it is for, in lower case; the first label of one may be `*`.
    names: Vec<String>,
    begins_at: SystemTime,
    expires_at: SystemTime,
}

impl Certificate {
    /// Reads a certificate and its key, and checks that they belong together.
    pub(crate) fn read(files: &CertificateFiles, provider: &CryptoProvider) -> anyhow::Result<Self> {
        let chain = chain(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .with_context(|| format!("{} has no private key in PEM form", files.key.display()))?;
        Self::new(chain, key, provider).with_context(|| {
            format!("{} and {} can't be used together", files.certificate.display(), files.key.display())
        })
    }

    /// From what an authority has issued: PEM, and the key as PKCS#8.
    pub(crate) fn from_pem(chain: &str, key: Vec<u8>) -> anyhow::Result<Self> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
        Self::new(chain.context("the chain is not PEM")?, key, &provider())
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        provider: &CryptoProvider,
    ) -> anyhow::Result<Self> {
        let Some(own) = chain.first() else { bail!("there is no certificate") };
        let Facts { names, begins_at, expires_at } = facts_of(own)?;
        // Fails where the key is another's.
        let certified = Arc::new(CertifiedKey::from_der(chain, key, provider)?);
        Ok(Self { certified, names, begins_at, expires_at })
    }

    /// When it is to be renewed: when a third of its life is left, and up to a thirtieth of it earlier, by `jitter` from 0 to 1.
    /// Zero if that is over.
    pub(crate) fn renew_in(&self, jitter: f64) -> Duration {
        let life = self.expires_at.duration_since(self.begins_at).unwrap_or_default();
        let renew_at = self.begins_at + life.mul_f64(2.0 / 3.0 - jitter / 30.0);
        renew_at.duration_since(clock::system_now()).unwrap_or_default()
    }

    /// Whether both are the same certificate.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.certified.cert == other.certified.cert
    }

    /// Whether it is for a name, which is in lower case.
    pub(crate) fn is_for(&self, name: &str) -> bool {
        let parent = name.split_once('.').map(|(_, parent)| parent);
        self.names.iter().any(|own| match own.strip_prefix("*.") {
            Some(own) => parent == Some(own),
            None => own == name,
        })
    }

    pub(crate) fn expires_at(&self) -> SystemTime {
        self.expires_at
    }

    /// The names, for people.
    pub(crate) fn names(&self) -> String {
        self.names.join(", ")
    }
}

/// The certificates in a PEM file; at least one.
pub(super) fn chain(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let unreadable = || format!("{} has no certificate in PEM form", file.display());
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).with_context(unreadable)?.collect();
    let chain = chain.with_context(unreadable)?;
    if chain.is_empty() {
        bail!(unreadable());
    }
    Ok(chain)
}

/// What a certificate says of itself.
struct Facts {
    names: Vec<String>,
    begins_at: SystemTime,
    expires_at: SystemTime,
}

fn facts_of(certificate: &CertificateDer<'_>) -> anyhow::Result<Facts> {
    let parsed = X509::from_der(certificate).context("the certificate can't be read")?.tbs_certificate;
    let alternatives = parsed.get::<SubjectAltName>().context("its names can't be read")?;
    let names = alternatives.into_iter().flat_map(|(_, names)| names.0).filter_map(|name| match name {
        GeneralName::DnsName(name) => Some(name.as_str().to_ascii_lowercase()),
        _ => None,
    });
    let validity = parsed.validity;
    Ok(Facts {
        names: names.collect(),
        begins_at: validity.not_before.to_system_time(),
        expires_at: validity.not_after.to_system_time(),
    })
}

/// Everything that can be served.
#[derive(Debug)]
pub(crate) struct Certificates(Vec<Certificate>);

impl Certificates {
    pub(crate) fn read(
        files: impl Iterator<Item = CertificateFiles>,
        provider: &CryptoProvider,
    ) -> anyhow::Result<Self> {
        files.map(|files| Certificate::read(&files, provider)).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn extend(&mut self, more: Option<Certificate>) {
        self.0.extend(more);
    }

    /// The one for a name, else the first.
    fn choose(&self, name: Option<&str>) -> Option<&Certificate> {
        let name = name.map(str::to_ascii_lowercase);
        let named = name.and_then(|name| self.0.iter().find(|certificate| certificate.is_for(&name)));
        named.or(self.0.first())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Certificate> {
        self.0.iter()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(hello.server_name()).map(|certificate| Arc::clone(&certificate.certified))
    }
}
