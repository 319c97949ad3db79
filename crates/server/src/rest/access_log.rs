//! One log line and one count for each request. Never a body, a credential, a code, a query or an id that a client chose.

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use tokio::time::Instant;

use crate::{
    ids::HttpRequestId,
    metrics::{Answered, HttpMetrics},
    state::{AppState, SharedState},
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

/// Middleware: counts and logs the request when it is answered.
pub(crate) async fn log_request(State(app): State<SharedState>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let http_id = HttpRequestId::of(&request);
    let method = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let route = matched.as_ref().map_or("unknown", MatchedPath::as_str);
    let status = response.status().as_u16();
    app.metrics.http.count(Answered { route, status, after: Some(started.elapsed()) });
    let micros = micros_since(started);
    tracing::info!(request = %http_id, %method, path = route, status, micros, "served");
    response
}
