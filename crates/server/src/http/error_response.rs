//! The one place where a refusal becomes an answer.

use std::time::Duration;

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use countersign_core::Error;
use countersign_wire::{
    RawObject,
    failure::{Failure, GatewayError, TransportError},
    id::RequestId,
    msg_type::MsgType,
};
use serde::Serialize;

use super::{PROTO_JSON, request_id::HttpRequestId};
use crate::app::{App, Shared};

/// Why a request is not served. What the client reads and what the log reads are different.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    failure: Failure,
    request_id: Option<RequestId>,
    details: Option<String>,
    retry_after: Option<Duration>,
    /// For the log only.
    cause: Option<String>,
}

/// What is at fault, in the words of the specification only.
#[derive(Serialize)]
struct Details<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<&'a str>,
    problem: String,
}

impl Refusal {
    /// A request that a part of it, or its own shape, makes invalid.
    pub(crate) fn faulty(failure: Failure, fault: &countersign_wire::Error) -> Self {
        let details = match fault {
            countersign_wire::Error::Member(fault) => Details {
                member: Some(fault.path()).filter(|path| !path.is_empty()),
                problem: fault.problem().to_string(),
            },
            other => Details { member: None, problem: other.to_string() },
        };
        Self { details: serde_json::to_string(&details).ok(), ..failure.into() }
    }

    /// As [`Refusal::faulty`], for whatever is not inside of a hashed body.
    pub(crate) fn invalid(fault: &countersign_wire::Error) -> Self {
        Self::faulty(Failure::Validation, fault)
    }

    /// Too often.
    pub(crate) fn try_later(after: Duration) -> Self {
        Self { retry_after: Some(after), ..Failure::RateLimited.into() }
    }

    /// Says which exchange it is about.
    pub(crate) fn about(self, request_id: &RequestId) -> Self {
        Self { request_id: Some(request_id.clone()), ..self }
    }

    /// Says which exchange it is about, unless it does already.
    pub(crate) fn or_about(self, request_id: Option<RequestId>) -> Self {
        Self { request_id: self.request_id.or(request_id), ..self }
    }

    pub(crate) fn failure(&self) -> Failure {
        self.failure
    }

    /// The `error` envelope.
    pub(crate) fn envelope(&self, app: &App, http_id: &HttpRequestId) -> Vec<u8> {
        let body = GatewayError {
            code: self.failure.code().to_owned(),
            message: self.failure.message().to_owned(),
            retryable: self.failure.retryable(),
            request_id: self.request_id.clone(),
            details: self.details(),
        };
        let about = self.request_id.clone().unwrap_or_else(|| http_id.as_request_id());
        app.envelope(MsgType::Error, &about, body)
    }

    fn details(&self) -> Option<RawObject<'_>> {
        RawObject::reread(self.details.as_deref()?.as_bytes()).ok()
    }

    fn bare(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Bare<'a> {
            #[serde(flatten)]
            error: TransportError,
            #[serde(skip_serializing_if = "Option::is_none")]
            details: Option<RawObject<'a>>,
        }
        serde_json::to_vec(&Bare { error: self.failure.into(), details: self.details() }).unwrap_or_default()
    }

    /// Tells the log, once, of what is not the client's fault.
    pub(crate) fn log(&self, http_id: &HttpRequestId) {
        if self.failure.status() >= 500 {
            let cause = self.cause.as_deref().unwrap_or_default();
            tracing::error!(request = %http_id, code = self.failure.code(), cause, "not served");
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failure, request_id: None, details: None, retry_after: None, cause: None }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let failure = error.failure();
        match &error {
            Error::Invalid { fault, .. } => Self::faulty(failure, fault),
            Error::RateLimited(after) => Self::try_later(*after),
            Error::Store(cause) => Self { cause: Some(cause.to_string()), ..failure.into() },
            _ => failure.into(),
        }
    }
}

/// Names the exchange in whatever goes wrong.
pub(crate) trait About<T> {
    fn about(self, request_id: &RequestId) -> Result<T, Refusal>;
}

impl<T, E: Into<Refusal>> About<T> for Result<T, E> {
    fn about(self, request_id: &RequestId) -> Result<T, Refusal> {
        self.map_err(|error| error.into().about(request_id))
    }
}

impl IntoResponse for Refusal {
    /// Only marks the response; [`render`] writes it, since its form depends on the path.
    fn into_response(self) -> Response {
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The generic rows of 4.5, and whatever is not the protocol, answer errors as bare JSON, everything else as envelopes.
fn is_bare(path: &str) -> bool {
    const PLAIN: [&str; 8] = [
        "/v1/artifact",
        "/v1/decision",
        "/v1/prompt",
        "/v1/session/event",
        "/v1/status",
        "/healthz",
        "/readyz",
        "/openapi.json",
    ];
    PLAIN.contains(&path) || path.starts_with("/v1/session/") || path.starts_with("/platform/")
}

/// Writes refusals, and what every answer has in common.
pub(crate) async fn render(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let http_id = HttpRequestId::of(&request);
    let bare = is_bare(request.uri().path());
    let mut response = next.run(request).await;
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        refusal.log(&http_id);
        let (content_type, body) = match bare {
            true => ("application/json", refusal.bare()),
            false => (PROTO_JSON, refusal.envelope(&app, &http_id)),
        };
        *response.status_mut() =
            StatusCode::from_u16(refusal.failure.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        *response.body_mut() = Body::from(body);
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        if matches!(refusal.failure, Failure::RateLimited | Failure::Unavailable) {
            // Rounded up: whoever comes back then is not too early.
            let seconds = refusal.retry_after.map_or(1, |after| after.as_millis().div_ceil(1_000).max(1));
            let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if refusal.failure == Failure::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
    }
    http_id.put_on(&mut response);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write as _, sync::Arc};

    use axum::{
        Router,
        middleware::{from_fn, from_fn_with_state},
        routing::get,
    };
    use countersign_core::{Gateway, notify::LocalDoorbell, retention::Retention};
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;
    use crate::{
        http::{rates::Rates, request_id},
        secrets::{Secret, SystemRandom},
    };

    #[tokio::test]
    async fn every_failure_is_answered_with_its_status_in_the_form_of_its_row() {
        let folder = tempfile::tempdir().unwrap();
        let options = countersign_store_sqlite::Options::default();
        let store = countersign_store_sqlite::SqliteStore::open(folder.path().join("db"), options).unwrap();
        let doorbell = Arc::new(LocalDoorbell::default());
        let gateway = Gateway::new(Arc::new(store), doorbell, Arc::new(SystemRandom), Retention::default());
        let app = App::new(gateway, "gw".parse().unwrap(), Secret::random(), Rates::default());
        let mut table = String::new();
        for failure in Failure::ALL {
            for path in ["/v1/artifacts", "/v1/artifact"] {
                let router = Router::new()
                    .route(path, get(|| async { Refusal::from(*failure) }))
                    .layer(from_fn_with_state(app.clone(), render))
                    .layer(from_fn(request_id::name));
                let answer = router.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
                let header =
                    |name| answer.headers().get(name).map_or("-", |value| value.to_str().unwrap()).to_owned();
                let (status, content_type) = (answer.status().as_u16(), header("content-type"));
                let (retry_after, authenticate) = (header("retry-after"), header("www-authenticate"));
                let body = answer.into_body().collect().await.unwrap().to_bytes();
                let mut body: serde_json::Value = serde_json::from_slice(&body).unwrap();
                let error = if path == "/v1/artifacts" { body["body"].take() } else { body };
                let failure = format!("{failure:?}");
                writeln!(
                    table,
                    "{failure:<21} {status} {content_type:<22} {} retryable {} retry-after {retry_after} authenticate {authenticate}",
                    error["code"], error["retryable"]
                )
                .unwrap();
            }
        }
        insta::assert_snapshot!(table);
    }
}
