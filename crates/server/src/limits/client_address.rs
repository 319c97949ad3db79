//! Where a connection comes from.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The address of the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) SocketAddr);

impl ClientAddress {
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
    fn addresses_of_one_ipv6_network_are_one() {
        let network = |text: &str| ClientAddress(SocketAddr::new(text.parse().unwrap(), 1)).network();
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
