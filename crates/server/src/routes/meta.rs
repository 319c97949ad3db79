//! Health checks and the interface description.

use std::time::Duration;

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use countersign_wire::failure::Failure;
use serde::Serialize;
use tokio::time::timeout;

use crate::{error::ApiError, rest::response, state::SharedState};

/// The whole interface, as OpenAPI.
pub(crate) const OPENAPI: &str = include_str!("../../openapi.json");

/// A store that does not answer within this counts as unavailable.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

/// The process runs; nothing else is checked.
pub(crate) async fn alive() -> Response {
    response::json(StatusCode::OK, Health { status: "ok" })
}

/// Requests can be served: the store answers and accepts writes, and the gateway is not shutting down.
pub(crate) async fn ready(State(app): State<SharedState>) -> Result<Response, ApiError> {
    let store = app.gateway.store();
    let answers = matches!(timeout(STORE_TIMEOUT, store.now()).await, Ok(Ok(_)));
    match answers && app.lease.is_current() && !app.drain.has_begun() {
        true => Ok(response::json(StatusCode::OK, Health { status: "ready" })),
        false => Err(Failure::Unavailable.into()),
    }
}

pub(crate) async fn openapi() -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], OPENAPI).into_response()
}
