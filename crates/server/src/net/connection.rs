//! One connection: HTTP/1 requests, one after the other, until a handler takes it over, and again after that.

use std::{
    future::{Future as _, poll_fn},
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body};
use bytes::Buf as _;
use futures_util::future::{Either, ready};
use hyper::{
    Request, Response, StatusCode, Uri, Version,
    body::Incoming,
    header::{CONNECTION, HOST, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};
use tower::ServiceExt as _;

use super::{
    socket::{Socket, WRITE_TIMEOUT},
    stream::Stream,
    takeover::{TakeoverFuture, TakeoverSlot},
};
use crate::{
    limits::{ClientName, Peer},
    shutdown::Drain,
};

/// The head of a request must arrive within this; an idle connection is closed after it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

const MAX_HEAD_BYTES: usize = 16 << 10;

/// Bytes of a request body that are buffered for a connection.
const MAX_READ_BYTES: usize = 64 << 10;

/// A connection that is to be served, and what is known of its client.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) stream: Stream,
    pub(crate) peer: Peer,
    /// Whom its certificate names.
    pub(crate) name: Option<ClientName>,
}

/// Serves a connection to its end.
pub(crate) async fn serve(Admitted { stream, peer, name }: Admitted, router: Router, drain: Drain) {
    let mut socket = Some(Socket { stream, read: bytes::Bytes::new() });
    while let Some(ready) = socket.take() {
        // Boxed, so that a held connection does not carry the memory that HTTP needs.
        let taken_over = Box::pin(http(ready, peer, name.clone(), router.clone(), &drain)).await;
        let Some(taken_over) = taken_over else { return };
        socket = taken_over.await.filter(|_| !drain.has_begun());
    }
}

/// Serves HTTP until the connection ends, or a handler takes it over.
async fn http(
    socket: Socket,
    peer: Peer,
    name: Option<ClientName>,
    router: Router,
    drain: &Drain,
) -> Option<TakeoverFuture> {
    let slot = TakeoverSlot::default();
    let for_requests = slot.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        without_trailing_slash(&mut request);
        request.extensions_mut().insert(peer);
        if let Some(name) = &name {
            request.extensions_mut().insert(name.clone());
        }
        request.extensions_mut().insert(for_requests.clone());
        match names_host(&request) {
            true => Either::Left(router.clone().oneshot(request.map(Body::new))),
            false => Either::Right(ready(Ok(malformed()))),
        }
    });
    let io = TokioIo::new(ReplayStream { read: socket.read, stream: socket.stream, stalled: None });
    let mut builder = http1::Builder::new();
    // A client may end its sending side and still read the answer. One that is gone is noticed by what waits for long,
    // which is out of HTTP, and by the answer that can't be written.
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).half_close(true);
    builder.max_headers(64).max_header_size(MAX_HEAD_BYTES).max_buf_size(MAX_READ_BYTES);
    let mut connection = builder.serve_connection(io, service);
    let mut draining = pin!(drain.begun());
    let mut shutting_down = false;
    let handler = poll_fn(|context: &mut Context<'_>| {
        if !shutting_down && draining.as_mut().poll(context).is_ready() {
            shutting_down = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        match connection.poll_without_shutdown(context) {
            Poll::Ready(ended) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                }
                Poll::Ready(None)
            }
            // The request handler has asked for the connection and will not return.
            Poll::Pending => slot.take().map_or(Poll::Pending, |handler| Poll::Ready(Some(handler))),
        }
    })
    .await;
    let parts = connection.into_parts();
    let mut io = parts.io.into_inner();
    let Some(handler) = handler else {
        // Everything is answered; close the connection.
        drop(tokio::io::AsyncWriteExt::shutdown(&mut io).await);
        return None;
    };
    // Even an empty rest would keep hyper's whole buffer allocated for as long as the connection is held.
    let read: bytes::Bytes = match parts.read_buf.is_empty() && io.read.is_empty() {
        true => bytes::Bytes::new(),
        false => [parts.read_buf, io.read].concat().into(),
    };
    Some(handler(Socket { stream: io.stream, read }))
}

/// Whether the request names its host exactly once, as HTTP/1.1 demands: what is between client and gateway may choose
/// by it.
fn names_host<B>(request: &Request<B>) -> bool {
    request.version() != Version::HTTP_11 || request.headers().get_all(HOST).iter().count() == 1
}

/// As hyper answers what is not HTTP: no route has been chosen, which would say how errors are written.
fn malformed() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A path with a slash at its end is the path without.
fn without_trailing_slash<B>(request: &mut Request<B>) {
    let path = request.uri().path();
    let Some(shorter) = path.strip_suffix('/').filter(|shorter| !shorter.is_empty()) else { return };
    let target = match request.uri().query() {
        Some(query) => format!("{shorter}?{query}"),
        None => shorter.to_owned(),
    };
    if let Ok(uri) = target.parse::<Uri>() {
        *request.uri_mut() = uri;
    }
}

/// A stream that first replays what was read from it before, and fails when its client reads nothing for
/// [`WRITE_TIMEOUT`]: an answer that nobody reads must not be kept forever.
struct ReplayStream {
    read: bytes::Bytes,
    stream: Stream,
    /// Runs while the client reads nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl ReplayStream {
    fn within_timeout<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for ReplayStream {
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

impl AsyncWrite for ReplayStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.within_timeout(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.within_timeout(context, flushed)
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
        this.within_timeout(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
