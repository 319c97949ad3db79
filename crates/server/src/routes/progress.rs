//! `/platform/v1/exchanges/{requestId}/progress`: whether anybody has a request on a screen yet.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_core::model::notification::{ChannelId, FailureReason, Notified};
use countersign_wire::{
    Label,
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
    /// What became of notifications outside of the protocol.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notified: Vec<NotifiedChannel<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NotifiedChannel<'a> {
    channel: &'a ChannelId,
    label: &'a Label,
    sent_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    displayed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<FailureReason>,
}

impl<'a> From<&'a Notified> for NotifiedChannel<'a> {
    fn from(notified: &'a Notified) -> Self {
        Self {
            channel: &notified.channel,
            label: &notified.label,
            sent_at: notified.sent_at,
            accepted_at: notified.accepted_at,
            displayed_at: notified.displayed_at,
            opened_at: notified.opened_at,
            failed: notified.failed,
        }
    }
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
        notified: approver.notified.iter().map(NotifiedChannel::from).collect(),
    });
    let body =
        ProgressBody { request_id: &request_id, state: progress.state, approvers: approvers.collect() };
    response::json(StatusCode::OK, body)
}
