//! A blocking HTTP/1.1 client: one keep-alive connection, one request at a time.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// The timeout of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Calls block: each publisher has its own thread.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        Ok(Self { stream, read: Vec::new() })
    }

    /// Sends a request and reads its response; any status but 2xx is an error.
    pub(crate) fn call(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request)?;
        self.read.clear();
        let head = loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            self.read_more()?;
        };
        let (status, body) = parse_head(&self.read[..head])?;
        match body {
            Body::Length(length) => {
                while self.read.len() < head + length {
                    self.read_more()?;
                }
            }
            Body::Chunked => {
                while !self.read.ends_with(b"0\r\n\r\n") {
                    self.read_more()?;
                }
            }
        }
        match status {
            200..=299 => Ok(()),
            _ => Err(io::Error::other(format!("answered with {}", String::from_utf8_lossy(&self.read)))),
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut chunk = [0; 4_096];
        match self.stream.read(&mut chunk)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.read.extend_from_slice(&chunk[..count]);
                Ok(())
            }
        }
    }
}

/// The status of a response, and how long its body is.
pub(super) fn parse_head(head: &[u8]) -> io::Result<(u16, Body)> {
    let head = std::str::from_utf8(head).map_err(io::Error::other)?;
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other("not an HTTP response"))?;
    let value = |name: &str| {
        let line =
            head.lines().find(|line| line.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name)));
        line.map(|line| line[name.len()..].trim())
    };
    let body = match value("content-length:").map(str::parse) {
        Some(Ok(length)) => Body::Length(length),
        Some(Err(_)) => return Err(io::Error::other("not a content-length")),
        None if value("transfer-encoding:").is_some() => Body::Chunked,
        None => Body::Length(0),
    };
    Ok((status, body))
}

/// How the end of a response's body is found.
pub(super) enum Body {
    Length(usize),
    Chunked,
}
