//! `POST /v1/artifacts`.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::msg_type::MsgType;

use crate::{
    app::Shared,
    auth::Enforcer,
    http::{answer, error_response::Refusal, operations, received::Received},
};

pub(crate) async fn submit(
    State(app): State<Shared>,
    caller: Enforcer,
    received: Received,
) -> Result<Response, Refusal> {
    let framed = received.envelope(&MsgType::ArtifactSubmit)?;
    let key = received.idempotency_key(&caller.principal)?;
    let submitted = operations::submit(&app, &caller, framed, key).await?;
    let accepted = &submitted.accepted;
    let envelope = app.envelope(MsgType::ArtifactAccepted, &accepted.request_id, accepted);
    Ok(answer::replayed(answer::proto(StatusCode::ACCEPTED, envelope), submitted.replayed))
}
