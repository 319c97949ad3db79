//! `POST /v1/prompt`: an approver's prompt, or an enforcer's word on one.

use axum::{
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode},
    response::Response,
};
use countersign_core::model::credential::Role;
use serde::Serialize;

use crate::{
    auth::Participant,
    error::ApiError,
    protocol::operations,
    rest::{body::RequestBody, response},
    state::SharedState,
};

/// What has become of a prompt by now: a repeated one gets the first answer again, which says `queued`.
const PROTO_PROMPT_STATUS: HeaderName = HeaderName::from_static("proto-prompt-status");

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Taken {
    request_id: countersign_wire::id::RequestId,
}

pub(crate) async fn submit(
    State(app): State<SharedState>,
    Participant(caller): Participant,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let key = body.idempotency_key(&caller.principal)?;
    if let Role::Enforcer(_) = caller.role {
        // Acknowledging again changes nothing, so the key is only checked.
        let request_id = operations::acknowledge_prompt(&app, &caller.enforcer()?, &body.framed()?).await?;
        return response::json(StatusCode::OK, Taken { request_id });
    }
    let approver = caller.approver()?;
    let sent = operations::send_prompt(&app, &approver, body.framed()?, key).await?;
    let mut answer = response::json(StatusCode::ACCEPTED, sent.ack)?;
    answer.headers_mut().insert(PROTO_PROMPT_STATUS, HeaderValue::from_static(sent.current.as_str()));
    Ok(response::replayed(answer, sent.replayed))
}
