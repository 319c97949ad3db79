//! The answer that says which state an exchange is in.

use std::collections::BTreeMap;

use countersign_core::model::viewer::Viewer;
use countersign_wire::{
    RawObject,
    exchange::ExchangeStatus,
    extension::SEEN,
    failure::Failure,
    id::{ApproverId, RequestId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};
use serde::Serialize;

use crate::{
    error::{ApiError, ForRequest as _},
    state::AppState,
};

/// An approver's acknowledgement of the request, as the gateway knows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SeenBy<'a> {
    approver_id: &'a ApproverId,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a str>,
    at: Timestamp,
}

/// The `exchange.status` envelope, for a viewer that may see the exchange.
pub(crate) async fn exchange_status(
    app: &AppState,
    tenant: &TenantId,
    viewer: Viewer<'_>,
    request_id: &RequestId,
) -> Result<Vec<u8>, ApiError> {
    let snapshot = app.gateway.status(tenant, viewer, request_id).await.for_request(request_id)?;
    let decision = snapshot.decision.as_deref().map(RawObject::reread).transpose();
    let body = ExchangeStatus {
        request_id: request_id.clone(),
        state: snapshot.state,
        created_at: snapshot.created_at,
        expires_at: snapshot.expires_at,
        artifact_hash: Some(snapshot.artifact_hash),
        decision: decision.map_err(|_| Failure::Internal)?,
    };
    // The specification closes the body of a status, so what it does not name goes into the free-form trace.
    let seen: Vec<SeenBy<'_>> = snapshot
        .seen
        .iter()
        .map(|seen| SeenBy { approver_id: &seen.approver, status: seen.status.as_deref(), at: seen.at })
        .collect();
    if seen.is_empty() {
        return app.envelope(MsgType::ExchangeStatus, request_id, body);
    }
    let trace =
        serde_json::to_string(&BTreeMap::from([(SEEN.key(), seen)])).map_err(|_| Failure::Internal)?;
    let trace = RawObject::parse(trace.as_bytes()).map_err(|_| Failure::Internal)?;
    app.envelope_with_trace(MsgType::ExchangeStatus, request_id, body, Some(trace))
}
