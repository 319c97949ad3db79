//! Where a connection comes from, and from whom.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use axum::http::{HeaderMap, HeaderValue};
use countersign_core::model::credential::CertificateSpec;

use crate::config::ProxyHeader;

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Whether nobody passes on what it sends: it speaks TLS with us, or a trusted proxy has said who it is. Anybody
    /// else may be a proxy with many clients.
    pub(crate) is_direct: bool,
    /// Whether it speaks TLS with us.
    pub(crate) is_tls: bool,
}

/// The client that the certificate of a connection names, which an authority has vouched for.
pub(crate) type ClientName = Arc<CertificateSpec>;

/// The address of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) SocketAddr);

/// The proxies in front of this gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    pub addresses: Vec<IpAddr>,
    /// Where they say for whom they speak. One of them: what a proxy does not set itself, its client does.
    pub header: ProxyHeader,
}

impl TrustedProxies {
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address.to_canonical())
    }
}

impl ClientAddress {
    /// The client behind trusted proxies: the last address in what they say that is not one of them. `None` if nobody
    /// knows who it is.
    ///
    /// It is read from the right, since what is left of the first unknown address is the client's own words. What can't be read
    /// counts as the proxy's: whoever writes nonsense must not be free of limits. Without the header the proxy sets none, and nobody
    /// is known: it would be everybody behind it.
    pub(crate) fn behind(peer: Peer, proxies: &TrustedProxies, headers: &HeaderMap) -> Option<Self> {
        let address = Self(SocketAddr::new(peer.address.ip().to_canonical(), peer.address.port()));
        if !proxies.trusts(address.0.ip()) {
            return peer.is_direct.then_some(address);
        }
        let name = match proxies.header {
            ProxyHeader::XForwardedFor => "x-forwarded-for",
            ProxyHeader::Forwarded => "forwarded",
            ProxyHeader::ProxyProtocol => return None,
        };
        let address_of = if proxies.header == ProxyHeader::Forwarded { forwarded_for } else { address_of };
        let values: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        if values.is_empty() {
            return None;
        }
        let entries = values.iter().rev().flat_map(|value| value.rsplit(|byte| *byte == b','));
        let client = entries
            .map(address_of)
            .find(|address| !address.is_some_and(|address| proxies.trusts(address)))
            .flatten();
        Some(client.map_or(address, |client| Self(SocketAddr::new(client, 0))))
    }

    /// The address, or the /64 of an IPv6 address, of which one person has as many as they like.
    pub(crate) fn network(self) -> IpAddr {
        match self.0.ip().to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            v4 @ IpAddr::V4(_) => v4,
        }
    }
}

/// The address of an element of `Forwarded` (RFC 7239); `None` if it has none.
fn forwarded_for(element: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(element).ok()?;
    let mut values = text.split(';').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then_some(value.trim())
    });
    // Exactly one: of two, nobody knows which the proxy has written.
    let value = values.next().filter(|_| values.next().is_none())?;
    let unquoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    address_of(unquoted.unwrap_or(value).as_bytes())
}

/// The address in an entry, with or without a port; `None` if there is none.
fn address_of(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let address: Option<IpAddr> = text.parse().ok().or_else(with_port).or_else(bracketed);
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Peer {
        Peer { address: text.parse().unwrap(), is_direct: false, is_tls: false }
    }

    fn proxies(header: ProxyHeader) -> TrustedProxies {
        let addresses = ["127.0.0.1", "10.0.0.7"].map(|text| text.parse().unwrap()).to_vec();
        TrustedProxies { addresses, header }
    }

    fn behind(peer: Peer, header: ProxyHeader, name: &'static str, value: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        ClientAddress::behind(peer, &proxies(header), &headers).map(|client| client.0.ip().to_string())
    }

    #[test]
    fn the_client_is_the_last_address_that_is_no_trusted_proxy() {
        let proxy = peer("127.0.0.1:1");
        let behind = |peer, value| behind(peer, ProxyHeader::XForwardedFor, "x-forwarded-for", value);
        assert_eq!(behind(proxy, "192.0.2.9").as_deref(), Some("192.0.2.9"));
        assert_eq!(behind(proxy, "6.6.6.6, 192.0.2.9, 10.0.0.7").as_deref(), Some("192.0.2.9"));
        for (forwarded, client) in [
            ("192.0.2.9:443, 10.0.0.7", "192.0.2.9"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("::ffff:192.0.2.9", "192.0.2.9"),
            ("6.6.6.6, ::ffff:10.0.0.7", "6.6.6.6"),
            ("é, 192.0.2.9", "192.0.2.9"),
            ("192.0.2.9, nonsense", "127.0.0.1"),
            ("192.0.2.9, é", "127.0.0.1"),
            ("192.0.2.9,", "127.0.0.1"),
            ("10.0.0.7", "127.0.0.1"),
            ("", "127.0.0.1"),
        ] {
            assert_eq!(behind(proxy, forwarded).as_deref(), Some(client), "{forwarded}");
        }
        assert_eq!(behind(peer("[::ffff:127.0.0.1]:1"), "192.0.2.9").as_deref(), Some("192.0.2.9"));
        let none = ClientAddress::behind(proxy, &proxies(ProxyHeader::XForwardedFor), &HeaderMap::new());
        assert!(none.is_none());
        let stranger = peer("192.0.2.1:1");
        assert_eq!(behind(stranger, "192.0.2.9"), None, "anybody can send the header");
        let direct = Peer { is_direct: true, ..stranger };
        assert_eq!(behind(direct, "192.0.2.9").as_deref(), Some("192.0.2.1"), "it is who it is");
    }

    #[test]
    fn only_the_header_that_the_proxies_set_is_believed() {
        let proxy = peer("127.0.0.1:1");
        let forwarded = |value| behind(proxy, ProxyHeader::Forwarded, "forwarded", value);
        for (value, client) in [
            ("for=192.0.2.9", "192.0.2.9"),
            ("For=\"192.0.2.9:4711\";proto=https;by=10.0.0.7", "192.0.2.9"),
            ("for=\"[2001:db8::1]:4711\"", "2001:db8::1"),
            ("for=6.6.6.6, for=192.0.2.9;proto=http, for=10.0.0.7", "192.0.2.9"),
            ("for=192.0.2.9, for=_hidden", "127.0.0.1"),
            ("for=192.0.2.9, for=unknown", "127.0.0.1"),
            ("for=192.0.2.9;for=192.0.2.8", "127.0.0.1"),
            ("for=192.0.2.9, proto=https", "127.0.0.1"),
            ("for=\"192.0.2.9", "127.0.0.1"),
            ("", "127.0.0.1"),
        ] {
            assert_eq!(forwarded(value).as_deref(), Some(client), "{value}");
        }
        assert_eq!(behind(proxy, ProxyHeader::Forwarded, "x-forwarded-for", "192.0.2.9"), None);
        assert_eq!(behind(proxy, ProxyHeader::XForwardedFor, "forwarded", "for=192.0.2.9"), None);
        for name in ["x-forwarded-for", "forwarded"] {
            assert_eq!(behind(proxy, ProxyHeader::ProxyProtocol, name, "192.0.2.9"), None);
        }
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one() {
        let network = |text: &str| ClientAddress(SocketAddr::new(text.parse().unwrap(), 1)).network();
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_ne!(network("::ffff:192.0.2.1"), network("::ffff:192.0.2.2"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
    }
}
