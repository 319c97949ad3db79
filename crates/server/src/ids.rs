//! Ids that the gateway makes: of messages and of HTTP requests.

use std::{convert::Infallible, fmt, sync::Arc};

use axum::{
    extract::{FromRequestParts, Request},
    http::{HeaderName, HeaderValue, Response as HttpResponse, request::Parts},
};
use countersign_core::random::RandomSource;
use countersign_wire::id::{MsgId, RequestId};

use crate::{clock, random::SystemRandom};

/// The id of a message that the gateway itself sends.
pub(crate) fn new_msg_id() -> MsgId {
    let random: &dyn RandomSource = &SystemRandom;
    random.msg_id(clock::now())
}

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of one HTTP request: a ULID of ours. A client's own would get into answers and logs.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequestId(Arc<str>);

impl HttpRequestId {
    fn new() -> Self {
        Self(new_msg_id().as_str().into())
    }

    /// Gives the request an id.
    pub(crate) fn assign(request: &mut Request) -> Self {
        let id = Self::new();
        request.extensions_mut().insert(id.clone());
        id
    }

    /// The id that [`HttpRequestId::assign`] gave.
    pub(crate) fn of(request: &Request) -> Self {
        request.extensions().get().cloned().unwrap_or_else(|| Self("unnamed".into()))
    }

    /// The `requestId` of an envelope that concerns no exchange.
    pub(crate) fn as_request_id(&self) -> RequestId {
        match RequestId::new(&*self.0) {
            Ok(id) => id,
            Err(rule) => unreachable!("a ULID is an id: {rule}"),
        }
    }

    /// Adds the `X-Request-Id` header.
    pub(crate) fn put_on<B>(&self, response: &mut HttpResponse<B>) {
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            response.headers_mut().insert(X_REQUEST_ID, value);
        }
    }
}

impl fmt::Display for HttpRequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<S: Sync> FromRequestParts<S> for HttpRequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(|| Self("unnamed".into())))
    }
}
