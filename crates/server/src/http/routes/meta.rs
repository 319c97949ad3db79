//! What is said of the gateway itself.

use std::time::Duration;

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use countersign_wire::failure::Failure;
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    app::Shared,
    http::{answer, error_response::Refusal},
};

/// The whole interface, as OpenAPI.
pub(crate) const OPENAPI: &str = include_str!("../../../openapi.json");

/// A store that does not answer within this is away.
const STORE_TIME: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

/// The process runs.
pub(crate) async fn alive() -> Response {
    answer::json(StatusCode::OK, Health { status: "ok" })
}

/// Requests can be served: the store answers and takes what is written, and the gateway is not about to stop.
pub(crate) async fn ready(State(app): State<Shared>) -> Result<Response, Refusal> {
    let store = app.gateway.store();
    let answers = matches!(timeout(STORE_TIME, store.now()).await, Ok(Ok(_)));
    match answers && app.lease.holds() && !app.drain.has_begun() {
        true => Ok(answer::json(StatusCode::OK, Health { status: "ready" })),
        false => Err(Failure::Unavailable.into()),
    }
}

pub(crate) async fn openapi() -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], OPENAPI).into_response()
}
