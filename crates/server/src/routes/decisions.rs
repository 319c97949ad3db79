//! `POST /v1/decisions`. An enforcer's credential never gets this far: it is no [`Approver`].

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::msg_type::MsgType;

use crate::{
    auth::Approver,
    error::ApiError,
    protocol::operations,
    rest::{body::RequestBody, response},
    state::SharedState,
};

pub(crate) async fn submit(
    State(app): State<SharedState>,
    caller: Approver,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let framed = body.envelope(&MsgType::DecisionSubmit)?;
    let key = body.idempotency_key(&caller.principal)?;
    let submitted = operations::decide(&app, &caller, framed, key).await?;
    let accepted = &submitted.accepted;
    let envelope = app.envelope(MsgType::DecisionAccepted, &accepted.request_id, accepted)?;
    Ok(response::replayed(response::proto(StatusCode::OK, envelope), submitted.replayed))
}
