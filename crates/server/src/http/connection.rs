//! One connection: HTTP requests, one after the other, until a handler takes it out of HTTP, and again after.

use std::{
    future::{Future as _, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body};
use bytes::Buf as _;
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};
use tower::ServiceExt as _;

use super::{
    accept::Peer,
    held::{Holding, Slot, Socket, WRITE_TIME},
    router::without_trailing_slash,
};
use crate::app::Drain;

/// The head of a request must arrive within this; an idle connection is closed after it.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// The head of a request may be so large.
const MOST_HEAD: usize = 16 << 10;

/// Read from a connection at once, and kept for it at most.
const MOST_READ: usize = 64 << 10;

/// Serves a connection to its end.
pub(crate) async fn serve(stream: TcpStream, address: SocketAddr, router: Router, drain: Drain) {
    let mut socket = Some(Socket { stream, read: bytes::Bytes::new() });
    while let Some(ready) = socket.take() {
        // In a box of its own, so that a held connection does not carry the room that HTTP needs.
        let holding = Box::pin(http(ready, Peer(address), router.clone(), &drain)).await;
        let Some(holding) = holding else { return };
        socket = holding.await.filter(|_| !drain.has_begun());
    }
}

/// Speaks HTTP until the connection ends, or a handler takes it.
async fn http(socket: Socket, peer: Peer, router: Router, drain: &Drain) -> Option<Holding> {
    let slot = Slot::default();
    let for_requests = slot.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        without_trailing_slash(&mut request);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(for_requests.clone());
        router.clone().oneshot(request.map(Body::new))
    });
    let io = TokioIo::new(Replayed { read: socket.read, stream: socket.stream, stalled: None });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).half_close(false);
    builder.max_headers(64).max_header_size(MOST_HEAD).max_buf_size(MOST_READ);
    let mut connection = builder.serve_connection(io, service);
    let mut draining = pin!(drain.begun());
    let mut told = false;
    let holder = poll_fn(|context: &mut Context<'_>| {
        if !told && draining.as_mut().poll(context).is_ready() {
            told = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        match connection.poll_without_shutdown(context) {
            Poll::Ready(ended) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                }
                Poll::Ready(None)
            }
            // The handler has left its word and will not return.
            Poll::Pending => slot.taken().map_or(Poll::Pending, |holder| Poll::Ready(Some(holder))),
        }
    })
    .await;
    let parts = connection.into_parts();
    let mut io = parts.io.into_inner();
    let Some(holder) = holder else {
        // All is said; tell the client so.
        drop(tokio::io::AsyncWriteExt::shutdown(&mut io).await);
        return None;
    };
    // Even an empty rest would keep hyper's whole buffer alive, for as long as the connection is held.
    let read: bytes::Bytes = match parts.read_buf.is_empty() && io.read.is_empty() {
        true => bytes::Bytes::new(),
        false => [parts.read_buf, io.read].concat().into(),
    };
    Some(holder(Socket { stream: io.stream, read }))
}

/// A stream that first gives again what was read from it before, and breaks when its client takes nothing for
/// [`WRITE_TIME`]: an answer that nobody reads must not be kept for ever.
struct Replayed {
    read: bytes::Bytes,
    stream: TcpStream,
    /// Runs while the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Replayed {
    fn in_time<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_TIME)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Replayed {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.read.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, into);
        }
        let count = this.read.len().min(into.remaining());
        into.put_slice(&this.read[..count]);
        this.read.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Replayed {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.in_time(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
