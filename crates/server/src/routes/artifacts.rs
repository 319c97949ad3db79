//! `POST /v1/artifacts`.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::msg_type::MsgType;

use crate::{
    auth::Enforcer,
    error::ApiError,
    protocol::operations,
    rest::{body::RequestBody, response},
    state::SharedState,
};

pub(crate) async fn submit(
    State(app): State<SharedState>,
    caller: Enforcer,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let framed = body.envelope(&MsgType::ArtifactSubmit)?;
    let key = body.idempotency_key(&caller.principal)?;
    let submitted = operations::submit(&app, &caller, framed, key).await?;
    let accepted = &submitted.accepted;
    let envelope = app.envelope(MsgType::ArtifactAccepted, &accepted.request_id, accepted)?;
    Ok(response::replayed(response::proto(StatusCode::ACCEPTED, envelope), submitted.replayed))
}
