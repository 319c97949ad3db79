//! `POST /v1/prompt`: an approver's prompt, or an enforcer's word on one.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_core::model::credential::Role;
use serde::Serialize;

use crate::{
    app::Shared,
    auth::Participant,
    http::{answer, error_response::Refusal, operations, received::Received},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Taken {
    request_id: countersign_wire::id::RequestId,
}

pub(crate) async fn submit(
    State(app): State<Shared>,
    Participant(caller): Participant,
    received: Received,
) -> Result<Response, Refusal> {
    if let Role::Enforcer(_) = caller.role {
        let request_id =
            operations::acknowledge_prompt(&app, &caller.enforcer()?, &received.framed()?).await?;
        return Ok(answer::json(StatusCode::OK, Taken { request_id }));
    }
    let approver = caller.approver()?;
    let key = received.idempotency_key(&approver.principal)?;
    let (ack, replayed) = operations::send_prompt(&app, &approver, received.framed()?, key).await?;
    Ok(answer::replayed(answer::json(StatusCode::ACCEPTED, ack), replayed))
}
