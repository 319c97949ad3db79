//! Where a connection comes from.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, HeaderValue};

/// The address of the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) SocketAddr);

impl ClientAddress {
    /// The client behind trusted proxies: the last address of `X-Forwarded-For` that is not one of them. `None` if the
    /// connection does not come from a trusted proxy: it may be anybody's proxy.
    ///
    /// It is read from the right, since what is left of the first unknown address is the client's own words. What can't be read
    /// counts as the proxy's: whoever writes nonsense must not be free of limits. Without the header the proxy sets none, and nobody
    /// is known: it would be everybody behind it.
    pub(crate) fn behind(peer: Self, trusted: &[IpAddr], headers: &HeaderMap) -> Option<Self> {
        let peer = Self(SocketAddr::new(peer.0.ip().to_canonical(), peer.0.port()));
        if !trusted.contains(&peer.0.ip()) {
            return None;
        }
        let values: Vec<&[u8]> =
            headers.get_all("x-forwarded-for").iter().map(HeaderValue::as_bytes).collect();
        if values.is_empty() {
            return None;
        }
        let entries = values.iter().rev().flat_map(|value| value.rsplit(|byte| *byte == b','));
        let client = entries
            .map(address_of)
            .find(|address| !address.is_some_and(|address| trusted.contains(&address)))
            .flatten();
        Some(client.map_or(peer, |address| Self(SocketAddr::new(address, 0))))
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

    #[test]
    fn the_client_is_the_last_address_that_is_no_trusted_proxy() {
        let trusted: Vec<IpAddr> = ["127.0.0.1", "10.0.0.7"].map(|text| text.parse().unwrap()).to_vec();
        let proxy = ClientAddress("127.0.0.1:1".parse().unwrap());
        let behind = |peer, forwarded: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", HeaderValue::from_bytes(forwarded.as_bytes()).unwrap());
            ClientAddress::behind(peer, &trusted, &headers).map(|client| client.0.ip().to_string())
        };
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
        let mapped = ClientAddress("[::ffff:127.0.0.1]:1".parse().unwrap());
        assert_eq!(behind(mapped, "192.0.2.9").as_deref(), Some("192.0.2.9"));
        assert!(ClientAddress::behind(proxy, &trusted, &HeaderMap::new()).is_none());
        let stranger = ClientAddress("192.0.2.1:1".parse().unwrap());
        assert_eq!(behind(stranger, "192.0.2.9"), None, "anybody can send the header");
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
