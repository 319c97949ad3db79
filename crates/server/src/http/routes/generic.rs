//! The generic endpoints of section 4.5 for exchanges: bare objects or envelopes in, bare objects out.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::id::GatewayId;
use serde::Serialize;

use crate::{
    app::Shared,
    auth::{Approver, Caller, Enforcer},
    http::{answer, error_response::Refusal, operations, received::Received},
};

pub(crate) async fn artifact(
    State(app): State<Shared>,
    caller: Enforcer,
    received: Received,
) -> Result<Response, Refusal> {
    let key = received.idempotency_key(&caller.principal)?;
    let submitted = operations::submit(&app, &caller, received.framed()?, key).await?;
    Ok(answer::replayed(answer::json(StatusCode::ACCEPTED, submitted.accepted), submitted.replayed))
}

pub(crate) async fn decision(
    State(app): State<Shared>,
    caller: Approver,
    received: Received,
) -> Result<Response, Refusal> {
    let key = received.idempotency_key(&caller.principal)?;
    let submitted = operations::decide(&app, &caller, received.framed()?, key).await?;
    Ok(answer::replayed(answer::json(StatusCode::OK, submitted.accepted), submitted.replayed))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct About<'a> {
    status: &'static str,
    protocol: &'static str,
    gateway_id: &'a GatewayId,
}

pub(crate) async fn status(State(app): State<Shared>, _caller: Caller) -> Response {
    answer::json(StatusCode::OK, About { status: "ok", protocol: "0.2", gateway_id: &app.gateway_id })
}
