//! `POST /v1/acks`.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::msg_type::MsgType;

use crate::{
    auth::Participant,
    error::ApiError,
    protocol::operations,
    rest::{body::RequestBody, response},
    state::SharedState,
};

pub(crate) async fn submit(
    State(app): State<SharedState>,
    Participant(caller): Participant,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let framed = body.ack_envelope()?;
    let accepted = operations::acknowledge(&app, &caller, &framed).await?;
    let envelope = app.envelope(MsgType::AckAccepted, &accepted.request_id, &accepted)?;
    Ok(response::proto(StatusCode::OK, envelope))
}
