//! `/platform/v1/exchanges/{requestId}/progress`: whether anybody has a request on a screen yet.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::{
    exchange::ExchangeState,
    id::{ApproverId, RequestId},
    timestamp::Timestamp,
};
use serde::Serialize;

use crate::{
    auth::Enforcer,
    error::{ApiError, ForRequest as _},
    rest::{params::PathId, response},
    state::SharedState,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressBody<'a> {
    request_id: &'a RequestId,
    state: ExchangeState,
    approvers: Vec<ApproverProgress<'a>>,
}

/// The gateway's word, and no more: it can't prove what happens on a device.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApproverProgress<'a> {
    approver_id: &'a ApproverId,
    rung: Timestamp,
    received: Option<Timestamp>,
    seen: Option<Timestamp>,
}

pub(crate) async fn progress(
    State(app): State<SharedState>,
    caller: Enforcer,
    PathId(request_id): PathId<RequestId>,
) -> Result<Response, ApiError> {
    let progress = app.gateway.progress(&caller.tenant, caller.viewer(), &request_id).await;
    let progress = progress.for_request(&request_id)?;
    let approvers = progress.approvers.iter().map(|approver| ApproverProgress {
        approver_id: &approver.approver,
        rung: approver.rung,
        received: approver.received,
        seen: approver.seen,
    });
    let body =
        ProgressBody { request_id: &request_id, state: progress.state, approvers: approvers.collect() };
    response::json(StatusCode::OK, body)
}
