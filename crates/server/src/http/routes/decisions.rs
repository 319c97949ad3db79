//! `POST /v1/decisions`. An enforcer's credential never gets this far: it is no [`Approver`].

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::msg_type::MsgType;

use crate::{
    app::Shared,
    auth::Approver,
    http::{answer, error_response::Refusal, operations, received::Received},
};

pub(crate) async fn submit(
    State(app): State<Shared>,
    caller: Approver,
    received: Received,
) -> Result<Response, Refusal> {
    let framed = received.envelope(&MsgType::DecisionSubmit)?;
    let key = received.idempotency_key(&caller.principal)?;
    let submitted = operations::decide(&app, &caller, framed, key).await?;
    let accepted = &submitted.accepted;
    let envelope = app.envelope(MsgType::DecisionAccepted, &accepted.request_id, accepted);
    Ok(answer::replayed(answer::proto(StatusCode::OK, envelope), submitted.replayed))
}
