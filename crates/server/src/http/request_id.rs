//! Every HTTP request gets an id of ours; a client's own is not taken over into answers and logs.

use std::{convert::Infallible, fmt};

use axum::{
    extract::{FromRequestParts, Request},
    http::{HeaderName, HeaderValue, request::Parts},
    middleware::Next,
    response::Response,
};
use countersign_wire::id::RequestId;

use super::answer::new_msg_id;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of one HTTP request: a ULID.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequestId(Box<str>);

impl HttpRequestId {
    pub(crate) fn new() -> Self {
        Self(new_msg_id().as_str().into())
    }

    /// The one that [`name`] gave.
    pub(crate) fn of(request: &Request) -> Self {
        request.extensions().get().cloned().unwrap_or_else(|| Self("unnamed".into()))
    }

    /// Where an envelope concerns no exchange, it carries this.
    pub(crate) fn as_request_id(&self) -> RequestId {
        match RequestId::new(self.0.clone()) {
            Ok(id) => id,
            Err(rule) => unreachable!("a ULID is an id: {rule}"),
        }
    }

    pub(crate) fn put_on<B>(&self, response: &mut axum::http::Response<B>) {
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

/// Gives the request its id.
pub(crate) async fn name(mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(HttpRequestId::new());
    next.run(request).await
}
