//! The bytes of a connection, as they travel or under TLS.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::tls::TlsStream;

/// Bytes that are read at once outside of HTTP.
const CHUNK: usize = 1_024;

/// Plain TCP, or TLS over it.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    /// Boxed, so that a plain connection does not carry its size.
    Tls(Box<TlsStream>),
}

impl Stream {
    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.tcp(),
        }
    }

    /// What the client sends next; `None` at the end. There is no buffer while nothing comes. Cancel-safe.
    pub(crate) async fn next_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        if let Self::Tls(tls) = self {
            return tls.poll_chunk(context);
        }
        loop {
            ready!(self.tcp().poll_read_ready(context))?;
            let mut chunk = vec![0; CHUNK];
            match self.tcp().try_read(&mut chunk) {
                Ok(0) => return Poll::Ready(Ok(None)),
                Ok(count) => {
                    chunk.truncate(count);
                    return Poll::Ready(Ok(Some(chunk)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(context, into),
            Self::Tls(tls) => Pin::new(tls).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Self::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Self::Tls(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write_vectored(context, slices),
            Self::Tls(tls) => {
                let first = slices.iter().find(|slice| !slice.is_empty());
                Pin::new(tls).poll_write(context, first.map_or(&[], |slice| slice))
            }
        }
    }

    /// Under TLS each slice would be a record of its own.
    fn is_write_vectored(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}
