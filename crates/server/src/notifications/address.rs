//! Where notifications may go. People choose the addresses, so the gateway calls none that only it could reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use crate::config::Network;

const MAX_URL: usize = 2_048;

/// The address is not one that this gateway calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address is not one that this gateway may call")]
pub(crate) struct NotAllowed;

/// Which addresses are called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowed(pub(crate) Vec<Network>);

impl Allowed {
    /// Whether an address is public, or in a network that the operator has named.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        is_public(address) || self.is_named(address)
    }

    fn is_named(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Checks what can be checked before the name is looked up: TLS, the port, an address in place of a name. Plain HTTP
    /// is for addresses in networks that the operator has named.
    pub(crate) fn check(&self, url: &str) -> Result<Url, NotAllowed> {
        let url = Some(url).filter(|url| url.len() <= MAX_URL).and_then(|url| Url::parse(url).ok());
        let url = url.ok_or(NotAllowed)?;
        // However an address was spelled, here it is in its usual form.
        let host = url.host_str().ok_or(NotAllowed)?;
        let literal: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        let is_named = literal.is_some_and(|address| self.is_named(address));
        let has_right_scheme = url.scheme() == "https" || url.scheme() == "http" && is_named;
        let has_right_port = url.port_or_known_default().is_some_and(|port| port == 443 || port >= 1_024);
        let is_right = has_right_scheme
            && (has_right_port || is_named)
            && url.username().is_empty()
            && url.password().is_none()
            && literal.is_none_or(|address| self.allows(address));
        if is_right { Ok(url) } else { Err(NotAllowed) }
    }
}

/// Whether anybody can reach an address: everything that is set aside for another purpose is not public.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    #[rustfmt::skip]
    let is_set_aside = a >= 224 || matches!(
        (a, b, c),
        (0 | 10 | 127, ..) | (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _) | (192, 168, _)
            | (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113)
    );
    !is_set_aside
}

/// Only what is given out as global unicast, without what leads to an IPv4 address or is for documents. So no mapped
/// address is public.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let is_global = a & 0xe000 == 0x2000;
    let is_special = match (a, b) {
        // Teredo, benchmarks, ORCHID and others; documents; 6to4.
        (0x2001, 0..=0x01ff | 0x0db8) | (0x2002, _) => true,
        _ => a == 0x3fff && b < 0x1000,
    };
    is_global && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spellings of one IPv4 address that programs take for it.
    fn spellings(address: Ipv4Addr) -> Vec<String> {
        let [a, b, c, d] = address.octets();
        let number = address.to_bits();
        let low = number & 0x00ff_ffff;
        let short = u32::from(c) << 8 | u32::from(d);
        let [high, middle] = [u32::from(a) << 8 | u32::from(b), short];
        vec![
            format!("{a}.{b}.{c}.{d}"),
            format!("{number}"),
            format!("{number:#x}"),
            format!("{number:#o}").replace("0o", "0"),
            format!("{a}.{low}"),
            format!("{a:#x}.{low:#x}"),
            format!("{a}.{b}.{short}"),
            format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
            format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
            format!("{a}.{b}.{c}.{d}."),
            format!("[::ffff:{a}.{b}.{c}.{d}]"),
            format!("[::ffff:{high:x}:{middle:x}]"),
            format!("[0:0:0:0:0:ffff:{a}.{b}.{c}.{d}]"),
            format!("[::{a}.{b}.{c}.{d}]"),
            format!("[64:ff9b::{a}.{b}.{c}.{d}]"),
            format!("[64:ff9b:1::{a}.{b}.{c}.{d}]"),
            format!("[2002:{high:x}:{middle:x}::1]"),
            format!("%3{}.{b}.{c}.{d}", a),
        ]
    }

    #[test]
    fn no_spelling_of_an_address_that_is_not_public_is_allowed() {
        let allowed = Allowed::default();
        #[rustfmt::skip]
        let inside = ["127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "10.255.255.254", "172.16.0.1", "172.31.9.9",
            "192.168.1.1", "169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.254", "192.0.0.1", "192.0.2.1",
            "198.18.0.1", "198.19.255.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1",
            "255.255.255.255", "192.88.99.1", "168.63.129.16"];
        let mut tried = 0;
        for address in inside.iter().filter(|address| **address != "168.63.129.16") {
            for host in spellings(address.parse().unwrap()) {
                for url in
                    [format!("https://{host}/"), format!("https://{host}:8443/x"), format!("http://{host}/")]
                {
                    tried += 1;
                    assert!(allowed.check(&url).is_err(), "{url}");
                }
            }
        }
        #[rustfmt::skip]
        let others = ["[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[fd12:3456::1]", "[ff02::1]", "[2001:db8::1]", "[2001::1]",
            "[2001:20::1]", "[3fff::1]", "[5f00::1]", "[100::1]", "[fec0::1]", "[::ffff:0:127.0.0.1]", "[4000::1]"];
        for host in others {
            tried += 1;
            assert!(allowed.check(&format!("https://{host}/")).is_err(), "{host}");
        }
        assert!(tried > 1_000, "{tried}");
    }

    #[test]
    fn public_addresses_are_allowed_over_tls_only_and_not_on_ports_of_other_services() {
        let allowed = Allowed::default();
        for right in [
            "https://8.8.8.8/x",
            "https://push.example.org/a?b",
            "https://[2606:4700::1]/",
            "https://x.example:8443/",
        ] {
            assert!(allowed.check(right).is_ok(), "{right}");
        }
        #[rustfmt::skip]
        let wrong = ["http://push.example.org/", "https://push.example.org:25/", "https://push.example.org:22/", "ftp://x/",
            "https://user@push.example.org/", "https://a:b@push.example.org/", "file:///etc/passwd", "https:", "x", "",
            "gopher://8.8.8.8/", "https://8.8.8.8:0/"];
        for wrong in wrong {
            assert!(allowed.check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_network_that_the_operator_names_is_allowed_and_nothing_else() {
        let allowed = Allowed(vec!["10.1.0.0/16".parse().unwrap()]);
        assert!(allowed.check("http://10.1.2.3:80/").is_ok() && allowed.check("https://10.1.2.3/").is_ok());
        assert!(allowed.check("http://10.2.2.3/").is_err() && allowed.check("http://example.org/").is_err());
    }
}
