//! What is not part of the protocol: running the gateway.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_core::{model::tenant::Suspension, use_cases::tenants::ListedTenant};
use countersign_wire::{failure::Failure, id::TenantId, timestamp::Timestamp};
use serde::Serialize;

use crate::{
    auth::GatewayOperator,
    error::ApiError,
    rest::{
        cursor::RecordsCursor,
        params::{PathId, QueryParams},
        response,
    },
    state::SharedState,
};

/// A tenant and whether it may be used.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownTenant<'a> {
    tenant: &'a TenantId,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspended_at: Option<Timestamp>,
    /// From when on everything of it is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    erased_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_bytes: Option<u64>,
}

fn shown(tenant: &TenantId, suspension: Option<Suspension>, stored_bytes: Option<u64>) -> ShownTenant<'_> {
    let erased_at = suspension.and_then(|suspension| suspension.erased_at);
    let state = match suspension {
        None => "active",
        Some(_) if erased_at.is_some() => "erasing",
        Some(_) => "suspended",
    };
    let suspended_at = suspension.map(|suspension| suspension.since);
    ShownTenant { tenant, state, suspended_at, erased_at, stored_bytes }
}

fn listed((tenant, summary): &ListedTenant) -> ShownTenant<'_> {
    match summary {
        Some(summary) => shown(tenant, summary.suspension, Some(summary.stored_bytes)),
        None => ShownTenant { state: "moving", ..shown(tenant, None, None) },
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedTenants<'a> {
    tenants: Vec<ShownTenant<'a>>,
    next_cursor: Option<String>,
}

pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: GatewayOperator,
    query: QueryParams,
) -> Result<Response, ApiError> {
    let cursors = RecordsCursor { tenant: &caller.tenant, list: "tenants" };
    let after = cursors.after(&app.secret, &query)?;
    let after = after.map(|after| after.parse::<TenantId>()).transpose().map_err(|_| Failure::Cursor)?;
    let page = app.gateway.tenants(after.as_ref(), query.limit()?).await?;
    let next_cursor = page.next.map(|next| cursors.cursor(&app.secret, &next));
    let tenants = page.items.iter().map(listed).collect();
    response::json(StatusCode::OK, ListedTenants { tenants, next_cursor })
}

pub(crate) async fn suspend(
    State(app): State<SharedState>,
    _: GatewayOperator,
    PathId(tenant): PathId<TenantId>,
) -> Result<Response, ApiError> {
    let suspension = app.gateway.suspend_tenant(&tenant).await?;
    response::json(StatusCode::OK, shown(&tenant, Some(suspension), None))
}

pub(crate) async fn resume(
    State(app): State<SharedState>,
    _: GatewayOperator,
    PathId(tenant): PathId<TenantId>,
) -> Result<Response, ApiError> {
    app.gateway.resume_tenant(&tenant).await?;
    response::json(StatusCode::OK, shown(&tenant, None, None))
}

pub(crate) async fn erase(
    State(app): State<SharedState>,
    _: GatewayOperator,
    PathId(tenant): PathId<TenantId>,
) -> Result<Response, ApiError> {
    let suspension = app.gateway.erase_tenant(&tenant).await?;
    response::json(StatusCode::ACCEPTED, shown(&tenant, Some(suspension), None))
}
