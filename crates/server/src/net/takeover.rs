//! Connections that are held for long are taken out of HTTP, so that they cost a socket and a task and no buffers.
//!
//! A handler that has made sure that there is something to wait for calls [`ConnectionTakeover::take`]; its request ends
//! there, and [`super::connection`] hands the bare socket to what it was given.

use std::{convert::Infallible, future::Future, pin::Pin, sync::Arc, time::Duration};

use axum::{
    extract::FromRequestParts,
    http::{Version, header, request::Parts},
};
use countersign_wire::failure::Failure;
use futures_util::FutureExt as _;
use parking_lot::Mutex;

use super::socket::Socket;
use crate::{auth::Caller, error::ApiError, limits::QuotaPermit, metrics::Rejection, state::SharedState};

/// What runs while the connection is out of HTTP; returns the socket if more requests may come.
pub(crate) type TakeoverFuture = Pin<Box<dyn Future<Output = Option<Socket>> + Send>>;
type TakeoverHandler = Box<dyn FnOnce(Socket) -> TakeoverFuture + Send>;

/// Where a request handler leaves what is to be done with its connection.
#[derive(Clone, Default)]
pub(crate) struct TakeoverSlot(Arc<Mutex<Option<TakeoverHandler>>>);

impl TakeoverSlot {
    pub(crate) fn take(&self) -> Option<TakeoverHandler> {
        self.0.lock().take()
    }
}

/// Permission to take the connection out of HTTP. A request with a body gets none: the rest of the body would be read
/// as the next request, which another client may have sent through the same proxy.
pub(crate) struct ConnectionTakeover {
    slot: TakeoverSlot,
    /// Whether the client sends no further request over this connection.
    pub(crate) is_last_request: bool,
    permit: QuotaPermit,
}

/// A tenant with too many held connections is told to retry after this.
const RETRY_AFTER: Duration = Duration::from_secs(5);

impl ConnectionTakeover {
    /// Takes the connection out of HTTP. Never returns: the request's own future is dropped.
    pub(crate) async fn take<F, H>(self, handler: F) -> Infallible
    where
        F: FnOnce(Socket) -> H + Send + 'static,
        H: Future<Output = Option<Socket>> + Send + 'static,
    {
        let Self { slot, is_last_request, permit } = self;
        // Not awaited in an `async` block: it would keep room for all that it was given beside what it awaits.
        let handler: TakeoverHandler = Box::new(move |socket| {
            Box::pin(handler(socket).map(move |socket| {
                drop(permit);
                socket.filter(|_| !is_last_request)
            }))
        });
        *slot.0.lock() = Some(handler);
        std::future::pending().await
    }
}

impl FromRequestParts<SharedState> for ConnectionTakeover {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, ApiError> {
        let length = parts.headers.get(header::CONTENT_LENGTH);
        if length.is_some_and(|length| length != "0") || parts.headers.contains_key(header::TRANSFER_ENCODING)
        {
            return Err(ApiError::breaks("body", "must not be there"));
        }
        let caller = parts.extensions.get::<Caller>().ok_or(Failure::Internal)?;
        let mut permit = app.held_connections.permit(&caller.tenant);
        if !permit.try_reserve(1) {
            return Err(ApiError::rate_limited(RETRY_AFTER, Rejection::HeldConnections));
        }
        let slot = parts.extensions.get::<TakeoverSlot>().cloned().ok_or(Failure::Internal)?;
        let asks_to_close = parts.headers.get_all(header::CONNECTION).iter().any(|value| {
            let mut words = value.to_str().unwrap_or_default().split(',');
            words.any(|word| word.trim().eq_ignore_ascii_case("close"))
        });
        Ok(Self { slot, is_last_request: asks_to_close || parts.version != Version::HTTP_11, permit })
    }
}
