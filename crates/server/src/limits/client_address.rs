//! Where a connection comes from.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::HeaderMap;

/// The address of the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) SocketAddr);

impl ClientAddress {
    /// The client behind trusted proxies: the last address of `X-Forwarded-For` that is not one of them. `None` if the
    /// connection does not come from a trusted proxy: it may be anybody's proxy.
    pub(crate) fn behind(peer: Self, trusted: &[IpAddr], headers: &HeaderMap) -> Option<Self> {
        if !trusted.contains(&peer.0.ip()) {
            return None;
        }
        let forwarded: Vec<&str> = headers
            .get_all("x-forwarded-for")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .collect();
        let client = forwarded
            .iter()
            .rev()
            .map(|text| text.trim().parse::<IpAddr>())
            .find(|address| !address.as_ref().is_ok_and(|address| trusted.contains(address)));
        // What can't be read is not known, and not skipped: the entries before it are the client's own words.
        client?.ok().map(|address| Self(SocketAddr::new(address, 0)))
    }

    /// The address, or the /64 of an IPv6 address, of which one person has as many as they like.
    pub(crate) fn network(self) -> IpAddr {
        match self.0.ip() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            v4 @ IpAddr::V4(_) => v4,
        }
    }
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
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            ClientAddress::behind(peer, &trusted, &headers).map(|client| client.0.ip().to_string())
        };
        assert_eq!(behind(proxy, "192.0.2.9").as_deref(), Some("192.0.2.9"));
        assert_eq!(behind(proxy, "6.6.6.6, 192.0.2.9, 10.0.0.7").as_deref(), Some("192.0.2.9"));
        assert_eq!(behind(proxy, "192.0.2.9, nonsense"), None);
        let stranger = ClientAddress("192.0.2.1:1".parse().unwrap());
        assert_eq!(behind(stranger, "192.0.2.9"), None, "anybody can send the header");
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one() {
        let network = |text: &str| ClientAddress(SocketAddr::new(text.parse().unwrap(), 1)).network();
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
