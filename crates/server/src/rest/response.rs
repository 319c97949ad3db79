//! Answers over HTTP: successes, and the only renderer of errors.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, Response as HttpResponse, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use countersign_wire::{
    RawObject,
    failure::{Failure, TransportError},
};
use serde::Serialize;

use crate::{error::ApiError, ids::HttpRequestId, protocol::PROTO_JSON, state::AppState};

const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
pub(crate) const JSON: &str = "application/json";

/// An answer in the protocol's own media type.
pub(crate) fn proto(status: StatusCode, envelope: Vec<u8>) -> Response {
    with_type(status, PROTO_JSON, envelope.into())
}

/// An answer in plain JSON.
pub(crate) fn json(status: StatusCode, body: impl Serialize) -> Result<Response, ApiError> {
    let text = serde_json::to_vec(&body).map_err(|error| ApiError::internal(&error))?;
    Ok(with_type(status, JSON, text.into()))
}

/// An answer with this body.
pub(crate) fn with_type(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Marks an idempotent replay of an earlier answer.
pub(crate) fn replayed(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// How errors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// An envelope with msgType `error`.
    Envelope,
    /// `code`, `message`, `retryable` and `details` alone.
    Bare,
}

/// The only place where an error becomes bytes of an HTTP answer.
pub(crate) fn render_error(
    app: &AppState,
    http_id: &HttpRequestId,
    form: ErrorForm,
    error: &ApiError,
) -> HttpResponse<Bytes> {
    error.log(http_id);
    app.count_rejection(error);
    let (content_type, body) = match form {
        ErrorForm::Bare => (JSON, bare(error)),
        ErrorForm::Envelope => (PROTO_JSON, app.error_envelope(error, http_id)),
    };
    let mut response = HttpResponse::new(Bytes::from(body));
    *response.status_mut() =
        StatusCode::from_u16(error.failure().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(seconds) = error.retry_after_seconds() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if error.failure() == Failure::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn bare(error: &ApiError) -> Vec<u8> {
    #[derive(Serialize)]
    struct Bare<'a> {
        #[serde(flatten)]
        error: TransportError,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<RawObject<'a>>,
    }
    // Without a body it still is an error: the status says so.
    serde_json::to_vec(&Bare { error: error.failure().into(), details: error.details() }).unwrap_or_default()
}

/// The whole HTTP answer to a connection for which there is no file descriptor left.
pub(crate) fn busy_answer() -> Bytes {
    let body = bare(&Failure::Unavailable.into());
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\n\
         content-type: {JSON}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat().into()
}

/// The headers that every answer has, unless it has its own.
pub(crate) fn add_common_headers<B>(response: &mut HttpResponse<B>, http_id: &HttpRequestId) {
    http_id.put_on(response);
    // The page's files say something else.
    let caching = response.headers_mut().entry(header::CACHE_CONTROL);
    caching.or_insert(HeaderValue::from_static("no-store"));
}

/// Renders the error of a handler, if it returned one, and adds the common headers.
pub(crate) fn finish(
    app: &AppState,
    http_id: &HttpRequestId,
    form: ErrorForm,
    mut response: Response,
) -> Response {
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        let (parts, body) = render_error(app, http_id, form, &error).into_parts();
        *response.status_mut() = parts.status;
        *response.body_mut() = Body::from(body);
        response.headers_mut().remove(header::CONTENT_LENGTH);
        response.headers_mut().extend(parts.headers);
    }
    add_common_headers(&mut response, http_id);
    response
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use axum::{extract::Request, response::IntoResponse as _};
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::test_node::TestNode;

    #[tokio::test]
    async fn every_failure_has_one_status_and_form() {
        let node = TestNode::new();
        let app = &node.app;
        let mut table = String::new();
        for failure in Failure::ALL {
            for form in [ErrorForm::Envelope, ErrorForm::Bare] {
                let http_id = HttpRequestId::assign(&mut Request::new(Body::empty()));
                let answer = finish(app, &http_id, form, ApiError::from(*failure).into_response());
                let header =
                    |name| answer.headers().get(name).map_or("-", |value| value.to_str().unwrap()).to_owned();
                let (status, content_type) = (answer.status().as_u16(), header("content-type"));
                let (retry_after, authenticate) = (header("retry-after"), header("www-authenticate"));
                let body = answer.into_body().collect().await.unwrap().to_bytes();
                let mut body: serde_json::Value = serde_json::from_slice(&body).unwrap();
                let error = if form == ErrorForm::Envelope { body["body"].take() } else { body };
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
