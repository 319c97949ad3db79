//! The answer that says which state an exchange is in.

use countersign_core::model::viewer::Viewer;
use countersign_wire::{
    RawObject,
    exchange::ExchangeStatus,
    failure::Failure,
    id::{RequestId, TenantId},
    msg_type::MsgType,
};

use crate::{
    error::{ApiError, ForRequest as _},
    state::AppState,
};

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
    Ok(app.envelope(MsgType::ExchangeStatus, request_id, body))
}
