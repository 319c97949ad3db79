//! One log line, one count and one span for each request. Never a body, a credential, a code, a query or an id that a
//! client chose, apart from that of its trace.

use axum::{
    extract::{MatchedPath, Request},
    http::Method,
    response::Response,
};
use tokio::time::Instant;
use tracing::{
    Instrument as _,
    field::{Empty, display},
};

use crate::{
    ids::HttpRequestId,
    metrics::{Answered, HttpMetrics},
    state::AppState,
    traceparent::{TRACEPARENT, TraceParent},
    traces::{self, SPANS},
};

/// A connection that was taken out of HTTP, whose line is written and which is counted when it ends.
pub(crate) struct Held {
    http_id: HttpRequestId,
    http: HttpMetrics,
    route: &'static str,
    started: Instant,
}

impl Held {
    pub(crate) fn begin(app: &AppState, http_id: &HttpRequestId, route: &'static str) -> Self {
        let http = app.metrics.http.clone();
        Self { http_id: http_id.clone(), http, route, started: Instant::now() }
    }

    pub(crate) fn end(self, status: u16) {
        let Self { http_id, http, route, started } = self;
        let micros = micros_since(started);
        http.count(Answered { route, status, after: None });
        tracing::info!(request = %http_id, method = "GET", path = route, status, micros, "held");
    }
}

fn micros_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// The method by its name, if it is one of the usual. Others can be of any length.
fn named(method: &Method) -> &'static str {
    let usual = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT"];
    usual.into_iter().find(|usual| method == usual).unwrap_or("_OTHER")
}

/// Counts and logs the request when `handle` has answered it.
pub(crate) async fn log_request(
    app: &AppState,
    http_id: &HttpRequestId,
    request: Request,
    handle: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let started = Instant::now();
    let method = named(request.method());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("unknown", MatchedPath::as_str);
    let parent = TraceParent::of(request.headers());
    let span = tracing::trace_span!(
        target: SPANS,
        "request",
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        request = %http_id,
    );
    traces::continue_from(&span, parent.as_ref());
    let mut response = handle(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    span.record("http.response.status_code", status);
    if let Some(header) = parent.and_then(|parent| traces::reference(&span).unwrap_or(parent).header()) {
        response.headers_mut().insert(TRACEPARENT, header);
    }
    app.metrics.http.count(Answered { route, status, after: Some(started.elapsed()) });
    let micros = micros_since(started);
    let trace = parent.map(|parent| display(parent.trace()));
    tracing::info!(request = %http_id, trace, method, path = route, status, micros, "served");
    response
}
