//! What connects the nodes of a cluster.

use std::path::PathBuf;

use anyhow::bail;
use serde::Deserialize;

/// The doorbell and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DoorbellConfig {
    pub kind: DoorbellKind,
    /// Servers, separated by commas; only with NATS.
    pub url: Option<String>,
    /// Keeps clusters apart that use one NATS.
    pub cell: String,
    /// The file of a token, or of a user and a password.
    pub credentials: Option<PathBuf>,
    /// PEM file of the authorities that sign the servers' certificates.
    pub root_certificates: Option<PathBuf>,
    /// PEM file of this node's own certificate.
    pub client_certificate: Option<PathBuf>,
    /// PEM file of the key of this node's own certificate.
    pub client_key: Option<PathBuf>,
    /// Whether NATS on another machine may be used without TLS.
    pub allow_plain: bool,
}

impl Default for DoorbellConfig {
    fn default() -> Self {
        Self {
            kind: DoorbellKind::default(),
            url: None,
            cell: "main".to_owned(),
            credentials: None,
            root_certificates: None,
            client_certificate: None,
            client_key: None,
            allow_plain: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DoorbellKind {
    /// Within this process; other nodes find commits by polling.
    #[default]
    Local,
    Nats,
}

impl DoorbellConfig {
    /// The servers of `url`.
    pub fn servers(&self) -> Vec<String> {
        let parts = self.url.as_deref().unwrap_or_default().split(',').map(str::trim);
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// Rejects settings that can't work, and says what to do. What NATS itself needs is checked where it is opened.
    pub(super) fn check(&self, is_on_sqlite: bool) -> anyhow::Result<()> {
        match (self.kind, &self.url) {
            (DoorbellKind::Local, Some(_)) => {
                bail!(
                    "doorbell.url is for NATS and doorbell.kind is \"local\"; set kind = \"nats\" or remove the url"
                )
            }
            (DoorbellKind::Nats, None) => {
                bail!(
                    "doorbell.kind is \"nats\" and doorbell.url is missing; say how to reach it: url = \"nats://127.0.0.1:4222\""
                )
            }
            (DoorbellKind::Nats, Some(_)) if is_on_sqlite => {
                bail!(
                    "doorbell.kind is \"nats\", which connects several nodes, and store.kind is \"sqlite\", which is for \
                     one. For one node remove [doorbell]; for several set store.kind = \"postgres\" and store.url"
                )
            }
            _ => {}
        }
        if self.client_certificate.is_some() != self.client_key.is_some() {
            bail!("doorbell.client_certificate and doorbell.client_key belong together; set both or none");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn a_doorbell_that_is_half_described_or_does_not_fit_the_store_is_refused() {
        let postgres = "[store]\nkind = \"postgres\"\nurl = \"host=x\"\n";
        let with = |store: &str, doorbell: &str| {
            toml::from_str::<Config>(&format!("{store}[doorbell]\n{doorbell}")).unwrap().check()
        };
        let nats = "kind = \"nats\"\nurl = \"nats://127.0.0.1:4222\"";
        with(postgres, nats).unwrap();
        with(postgres, "").unwrap();
        let says = |result: anyhow::Result<()>| result.unwrap_err().to_string();
        assert!(says(with(postgres, "kind = \"nats\"")).contains("doorbell.url is missing"));
        assert!(says(with(postgres, "url = \"nats://x\"")).contains("set kind = \"nats\""));
        let one_node = says(with("", nats));
        assert!(one_node.contains("remove [doorbell]") && one_node.contains("store.kind = \"postgres\""));
        assert!(says(with(postgres, &format!("{nats}\nclient_key = \"k\""))).contains("belong together"));
    }

    #[test]
    fn several_servers_are_separated_by_commas() {
        let config: Config = toml::from_str("[doorbell]\nurl = \"nats://a:1, nats://b:2,\"").unwrap();
        assert_eq!(config.doorbell.servers(), ["nats://a:1", "nats://b:2"]);
    }
}
