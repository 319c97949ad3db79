//! The generic endpoints (docs/protocol.md#generic-endpoints) for exchanges: bare objects or envelopes in, bare objects out.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::id::GatewayId;
use serde::Serialize;

use crate::{
    auth::{Approver, Caller, Enforcer},
    error::ApiError,
    protocol::operations,
    rest::{body::RequestBody, response},
    state::SharedState,
};

pub(crate) async fn artifact(
    State(app): State<SharedState>,
    caller: Enforcer,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let key = body.idempotency_key(&caller.principal)?;
    let submitted = operations::submit(&app, &caller, body.framed()?, key).await?;
    Ok(response::replayed(response::json(StatusCode::ACCEPTED, submitted.accepted)?, submitted.replayed))
}

pub(crate) async fn decision(
    State(app): State<SharedState>,
    caller: Approver,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let key = body.idempotency_key(&caller.principal)?;
    let submitted = operations::decide(&app, &caller, body.framed()?, key).await?;
    Ok(response::replayed(response::json(StatusCode::OK, submitted.accepted)?, submitted.replayed))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct About<'a> {
    status: &'static str,
    protocol: &'static str,
    gateway_id: &'a GatewayId,
}

pub(crate) async fn status(State(app): State<SharedState>, _caller: Caller) -> Result<Response, ApiError> {
    response::json(StatusCode::OK, About { status: "ok", protocol: "0.2", gateway_id: &app.gateway_id })
}
