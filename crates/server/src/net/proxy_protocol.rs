//! The PROXY protocol, version 2: a proxy that passes bytes on says before them who sends them.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::timeout,
};

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The head must arrive within this. It is the first thing that a proxy sends.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// Bytes that follow the head: addresses, and what else a proxy says.
const MAX_REST: usize = 2 << 10;

const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;

/// Reads what the proxy says, and nothing of what follows. The client's address, or `None` if the proxy itself connects,
/// to see whether somebody is there.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    timeout(TIMEOUT, async {
        let mut head = [0; 16];
        stream.read_exact(&mut head).await?;
        let [signature @ .., command, family, high, low] = head;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if signature != SIGNATURE || length > MAX_REST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut rest = vec![0; length];
        stream.read_exact(&mut rest).await?;
        match (command, family) {
            (LOCAL, _) => Ok(None),
            (PROXY, TCP_OVER_IPV4) => source::<4, 12>(&rest, |ip| Ipv4Addr::from_octets(ip).into()).map(Some),
            (PROXY, TCP_OVER_IPV6) => {
                source::<16, 36>(&rest, |ip| Ipv6Addr::from_octets(ip).into()).map(Some)
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    })
    .await?
}

/// The source of a pair of addresses with their ports, which take `PAIR` bytes.
fn source<const ADDRESS: usize, const PAIR: usize>(
    rest: &[u8],
    ip: impl Fn([u8; ADDRESS]) -> IpAddr,
) -> io::Result<SocketAddr> {
    let pair: &[u8; PAIR] = rest.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
    let address = pair.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
    let port = pair.get(ADDRESS * 2..).and_then(|ports| ports.first_chunk());
    let port = port.ok_or(io::ErrorKind::InvalidData)?;
    Ok(SocketAddr::new(ip(*address), u16::from_be_bytes(*port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest, b"GET / HTTP/1.1\r\n"].concat()
    }

    #[tokio::test]
    async fn the_source_is_the_client_and_what_follows_is_left() {
        let ipv4 = [192, 0, 2, 9, 127, 0, 0, 1, 0x1f, 0x90, 0x01, 0xbb];
        let text = said(PROXY, TCP_OVER_IPV4, &[&ipv4[..], &[4, 0, 1, 0xff]].concat());
        let mut stream = text.as_slice();
        assert_eq!(read(&mut stream).await.unwrap(), Some("192.0.2.9:8080".parse().unwrap()));
        assert_eq!(stream, b"GET / HTTP/1.1\r\n");
        let mut ipv6 = [0; 36];
        ipv6[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        ipv6[33] = 7;
        let text = said(PROXY, TCP_OVER_IPV6, &ipv6);
        assert_eq!(read(&mut text.as_slice()).await.unwrap(), Some("[2001:db8::]:7".parse().unwrap()));
        assert_eq!(read(&mut said(LOCAL, 0, &[]).as_slice()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_is_not_version_2_over_tcp_is_refused() {
        let ipv4 = [0; 12];
        for text in [
            b"PROXY TCP4 192.0.2.9 127.0.0.1 1 2\r\n".to_vec(),
            b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
            said(PROXY, TCP_OVER_IPV4, &ipv4[..11]),
            said(PROXY, TCP_OVER_IPV6, &ipv4),
            said(PROXY, 0x12, &ipv4),
            said(PROXY, 0x31, &ipv4),
            said(0x11, TCP_OVER_IPV4, &ipv4),
            said(PROXY, TCP_OVER_IPV4, &[0; MAX_REST + 1]),
            said(PROXY, TCP_OVER_IPV4, &ipv4)[..20].to_vec(),
        ] {
            assert!(read(&mut text.as_slice()).await.is_err(), "{text:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_that_says_nothing_is_not_waited_for() {
        let (_proxy, mut stream) = tokio::io::duplex(64);
        assert_eq!(read(&mut stream).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
