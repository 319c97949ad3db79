//! Notifications of people outside of the protocol, as an operator sets them.

use std::{net::IpAddr, path::PathBuf, str::FromStr};

use anyhow::bail;
use axum::http::Uri;
use serde::Deserialize;

/// Where notifications may go, and who answers for them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotificationsConfig {
    /// Whom a push service writes to about this gateway; `None` for the address in `public_url`.
    pub contact: Option<String>,
    /// Networks that notifications may go to although they are not public.
    pub allowed_networks: Vec<Network>,
    /// The proxy through which everything is sent; `None` for none.
    pub proxy: Option<String>,
    /// PEM file of further authorities that are trusted; `None` for those of the system alone.
    pub ca: Option<PathBuf>,
}

/// Addresses that begin alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Network {
    address: IpAddr,
    /// The bits that count.
    bits: u32,
}

impl Network {
    /// Whether an address is in it.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let (ours, theirs, width) = match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => (ours.to_bits().into(), theirs.to_bits().into(), 32),
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => (ours.to_bits(), theirs.to_bits(), 128),
            _ => return false,
        };
        let differing: u128 = ours ^ theirs;
        differing.checked_shr(width - self.bits).unwrap_or(0) == 0
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(it, bits)| (it, Some(bits)));
        let wrong = || format!("\"{text}\" is not a network; write it like \"10.0.0.0/8\" or \"192.0.2.7\"");
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > width { Err(wrong()) } else { Ok(Self { address, bits }) }
    }
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl NotificationsConfig {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if let Some(contact) = &self.contact
            && !is_contact(contact)
        {
            bail!(
                "notifications.contact = \"{contact}\" is not an address that a push service could write to; write it \
                 like \"mailto:ops@example.org\""
            );
        }
        let is_proxy = |url: &String| {
            let parsed: Option<Uri> = url.parse().ok();
            parsed.is_some_and(|url| matches!(url.scheme_str(), Some("http" | "https")))
        };
        if self.proxy.as_ref().is_some_and(|proxy| !is_proxy(proxy)) {
            bail!(
                "notifications.proxy is not the address of a proxy; write it like \"http://proxy.example.org:3128\""
            );
        }
        if let Some(file) = self.ca.as_ref().filter(|file| !file.is_file()) {
            bail!("notifications.ca: there is no file {}", file.display());
        }
        Ok(())
    }

    /// Whom a push service writes to; `None` where nothing is known that it would take.
    pub fn subject(&self, public_url: &str) -> Option<String> {
        let own = Some(public_url).filter(|url| is_contact(url)).map(str::to_owned);
        self.contact.clone().or(own)
    }
}

/// Push services refuse a contact that leads nowhere: Apple's answers 403 to one at localhost.
fn is_contact(contact: &str) -> bool {
    let host = if let Some(mail) = contact.strip_prefix("mailto:") {
        mail.split_once('@').filter(|(name, _)| !name.is_empty()).map(|(_, host)| host.to_owned())
    } else {
        let url: Option<Uri> = contact.parse().ok();
        let url = url.filter(|url| url.scheme_str() == Some("https"));
        url.and_then(|url| url.host().map(str::to_owned))
    };
    host.is_some_and(|host| {
        let is_name = host.parse::<IpAddr>().is_err() && !host.contains(['[', ' ', '<', '>', ',']);
        is_name && host.trim_matches('.').contains('.') && !host.ends_with("localhost")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_what_begins_like_it() {
        let contains = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("10.0.0.0/8", "10.255.0.1") && !contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("127.0.0.1", "127.0.0.1") && !contains("127.0.0.1", "127.0.0.2"));
        assert!(contains("0.0.0.0/0", "8.8.8.8") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("fd00::/8", "fd12::1") && !contains("fd00::/8", "fe80::1"));
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "x", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_contact_is_one_that_push_services_take() {
        for right in ["mailto:ops@example.org", "https://gateway.example.org"] {
            assert!(is_contact(right), "{right}");
        }
        #[rustfmt::skip]
        let wrong = ["mailto:x@localhost", "mailto:@example.org", "mailto:x", "http://example.org", "https://localhost",
            "https://127.0.0.1:8787", "https://[::1]", "https://gateway.localhost", "ops@example.org"];
        for wrong in wrong {
            assert!(!is_contact(wrong), "{wrong}");
        }
    }
}
