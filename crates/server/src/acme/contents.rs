//! What all nodes share of an authority: the account, the certificate, and the challenges that are open.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use crate::{config::ChallengeKind, net::tls::Certificate};

/// The content of the record, which is encrypted.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Contents {
    /// The account's credentials, as the library writes them.
    pub(super) account: Option<serde_json::Value>,
    pub(super) issued: Option<Issued>,
    pub(super) challenges: Vec<Challenge>,
}

/// A certificate with its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Issued {
    /// PEM, the own certificate first.
    pub(super) chain: String,
    /// As PKCS#8, in base64.
    pub(super) key: String,
}

/// What the authority asks for a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Challenge {
    pub(super) name: String,
    pub(super) kind: ChallengeKind,
    pub(super) token: String,
    pub(super) authorization: String,
}

impl Issued {
    pub(super) fn new(chain: String, key: &[u8]) -> Self {
        Self { chain, key: STANDARD.encode(key) }
    }

    /// The certificate, if it can be served.
    pub(super) fn certificate(&self) -> anyhow::Result<Certificate> {
        Certificate::from_pem(&self.chain, STANDARD.decode(&self.key)?)
    }
}
