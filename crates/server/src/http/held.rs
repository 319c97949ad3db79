//! Connections that are held open for long leave HTTP, so that they cost a socket and a task and no buffers.
//!
//! A handler that has made sure that there is something to wait for calls [`Hold::take`]; its request ends
//! there, and [`super::connection`] hands the bare socket to what it was given.

use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    body::Bytes,
    extract::FromRequestParts,
    http::{Response, Version, header, request::Parts},
};
use bytes::BytesMut;
use countersign_wire::{failure::Failure, id::TenantId};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::timeout};

use super::{error_response::Refusal, shares::Share};
use crate::{app::Shared, clock};

/// A client that takes nothing of what it is sent for this long is let go.
pub(crate) const WRITE_TIME: Duration = Duration::from_secs(10);

/// A socket, with what was read from it and belongs to the next request.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) stream: TcpStream,
    pub(crate) read: Bytes,
}

/// What goes on while the connection is out of HTTP; gives it back if more requests may come.
pub(crate) type Holding = Pin<Box<dyn Future<Output = Option<Socket>> + Send>>;
type Holder = Box<dyn FnOnce(Socket) -> Holding + Send>;

/// Where a handler leaves what is to be done with its connection.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<Holder>>>);

impl Slot {
    pub(crate) fn taken(&self) -> Option<Holder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Leave to take the connection out of HTTP. A request with a body gets none: what is left of the body would be read as
/// the next request, which somebody else may have sent over the same proxy.
pub(crate) struct Hold {
    slot: Slot,
    /// Whether the client wants nothing else over this connection.
    pub(crate) last: bool,
    seat: Share,
}

/// A tenant with too many held connections is asked to come back after this.
const COME_BACK: Duration = Duration::from_secs(5);

impl Hold {
    /// Takes the connection out of HTTP. Never returns: the request's own future is dropped.
    pub(crate) async fn take<F, H>(self, holder: F) -> Infallible
    where
        F: FnOnce(Socket) -> H + Send + 'static,
        H: Future<Output = Option<Socket>> + Send + 'static,
    {
        let Self { slot, last, seat } = self;
        let holder: Holder = Box::new(move |socket| {
            Box::pin(async move {
                let _seat = seat;
                // Made here and not before: a future that is moved into another takes its room twice.
                holder(socket).await.filter(|_| !last)
            })
        });
        *slot.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(holder);
        std::future::pending().await
    }
}

impl FromRequestParts<Shared> for Hold {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        let length = parts.headers.get(header::CONTENT_LENGTH);
        if length.is_some_and(|length| length != "0") || parts.headers.contains_key(header::TRANSFER_ENCODING)
        {
            let fault = countersign_wire::Error::breaks("body", "must not be there");
            return Err(Refusal::invalid(&fault));
        }
        let tenant = parts.extensions.get::<TenantId>().ok_or(Failure::Unauthenticated)?;
        let mut seat = app.held.share_of(tenant);
        if !seat.grow(1) {
            return Err(Refusal::try_later(COME_BACK));
        }
        let slot = parts.extensions.get::<Slot>().cloned().ok_or(Failure::Internal)?;
        let asks_to_close = parts.headers.get_all(header::CONNECTION).iter().any(|value| {
            let mut words = value.to_str().unwrap_or_default().split(',');
            words.any(|word| word.trim().eq_ignore_ascii_case("close"))
        });
        Ok(Self { slot, last: asks_to_close || parts.version != Version::HTTP_11, seat })
    }
}

/// What the system may hold for a slow reader.
const SEND_BUFFER: usize = 64 << 10;

/// More than this ahead of its time is not kept for a client.
const MOST_AHEAD: usize = 64 << 10;

impl Socket {
    /// Returns when the client is gone. What it sends meanwhile is kept for the next request.
    pub(crate) async fn gone(&mut self) {
        loop {
            if self.stream.readable().await.is_err() {
                return;
            }
            // On the heap and only while there is something to read: an idle connection has no buffer.
            let mut chunk = Box::new([0; 1_024]);
            match self.stream.try_read(chunk.as_mut_slice()) {
                Ok(0) => return,
                Ok(count) => {
                    let mut read = BytesMut::from(self.read.as_ref());
                    read.extend_from_slice(&chunk[..count]);
                    self.read = read.freeze();
                    if self.read.len() > MOST_AHEAD {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// For a client that is sent messages one by one: what it does not take stays with us and not in the system, which
    /// would take megabytes for each.
    pub(crate) fn send_little_ahead(&self) {
        if let Err(error) = rustix::net::sockopt::set_socket_send_buffer_size(&self.stream, SEND_BUFFER) {
            tracing::debug!(%error, "the system keeps its own size of buffers");
        }
    }

    /// Writes the answer after which HTTP is over.
    pub(crate) async fn upgrade(&mut self, response: &Response<Bytes>) -> io::Result<()> {
        self.write(&head(response)).await
    }

    /// Writes all of it, to a client that takes it in time.
    pub(crate) async fn write(&mut self, text: &[u8]) -> io::Result<()> {
        timeout(WRITE_TIME, self.stream.write_all(text)).await?
    }

    /// Writes a whole answer.
    pub(crate) async fn answer(&mut self, mut response: Response<Bytes>) -> io::Result<()> {
        let length = response.body().len();
        if response.status() != axum::http::StatusCode::NO_CONTENT {
            response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        }
        let mut text = head(&response);
        text.extend_from_slice(response.body());
        self.write(&text).await
    }
}

/// The head of an answer as it is written.
pub(crate) fn head<B>(response: &Response<B>) -> Vec<u8> {
    let status = response.status();
    let mut text =
        format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or_default())
            .into_bytes();
    for (name, value) in response.headers() {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"date: ");
    text.extend_from_slice(clock::http_date().as_bytes());
    text.extend_from_slice(b"\r\n\r\n");
    text
}
