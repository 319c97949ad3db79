//! One log line for each request. Never a body, a credential, a code, a query or an id that a client chose.

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use tokio::time::Instant;

use crate::ids::HttpRequestId;

/// The same line for a connection that was taken out of HTTP, when it ends.
pub(crate) fn log_held(http_id: &HttpRequestId, path: &'static str, status: u16, started: Instant) {
    let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    tracing::info!(request = %http_id, method = "GET", path, status, micros, "held");
}

/// Middleware: logs the request when it is answered.
pub(crate) async fn log_request(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let http_id = HttpRequestId::of(&request);
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    tracing::info!(request = %http_id, %method, path, status, micros, "served");
    response
}
