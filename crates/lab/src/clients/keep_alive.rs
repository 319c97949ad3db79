//! An HTTP/1.1 client that costs little beside the server that it loads: one keep-alive connection, requests as prepared
//! bytes.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::http::{Body, parse_head};

/// A response that takes longer is an error.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Responses are much smaller.
const READ_BYTES: usize = 4_096;

/// One connection, with at most one request on its way.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    stream: TcpStream,
    read: Vec<u8>,
}

/// A response: its status, its head and its body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl KeepAlive {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::with_capacity(READ_BYTES) })
    }

    /// Sends a request and reads its response, whatever its status.
    pub(crate) async fn call(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        timeout(RESPONSE_TIMEOUT, self.exchange(request)).await?
    }

    /// Sends a request whose response must have a status from 200 to 299.
    pub(crate) async fn call_successfully(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        let response = self.call(request).await?;
        match response.status {
            200..=299 => Ok(response),
            status => Err(io::Error::other(format!("{status}: {}", String::from_utf8_lossy(response.body)))),
        }
    }

    async fn exchange(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        self.stream.write_all(request).await?;
        self.read.clear();
        let head = loop {
            self.read_more().await?;
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let (status, body) = parse_head(&self.read[..head])?;
        match body {
            Body::Length(length) => {
                while self.read.len() < head + length {
                    self.read_more().await?;
                }
            }
            Body::Chunked => {
                while !self.read.ends_with(b"0\r\n\r\n") {
                    self.read_more().await?;
                }
            }
        }
        let (head, body) = self.read.split_at(head);
        Ok(Response { status, head, body })
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
