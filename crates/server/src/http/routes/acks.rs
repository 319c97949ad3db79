//! `POST /v1/acks`.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::msg_type::MsgType;

use crate::{
    app::Shared,
    auth::Participant,
    http::{answer, error_response::Refusal, operations, received::Received},
};

pub(crate) async fn submit(
    State(app): State<Shared>,
    Participant(caller): Participant,
    received: Received,
) -> Result<Response, Refusal> {
    let framed = received.ack_envelope()?;
    let accepted = operations::acknowledge(&app, &caller, &framed).await?;
    let envelope = app.envelope(MsgType::AckAccepted, &accepted.request_id, &accepted);
    Ok(answer::proto(StatusCode::OK, envelope))
}
