//! `/v1/presence/enforcers`.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::id::EnforcerId;

use crate::{
    auth::Caller,
    error::ApiError,
    rest::{params::PathId, response},
    state::SharedState,
};

pub(crate) async fn list(State(app): State<SharedState>, caller: Caller) -> Result<Response, ApiError> {
    Ok(response::json(StatusCode::OK, app.gateway.presence_list(&caller.tenant).await?))
}

pub(crate) async fn one(
    State(app): State<SharedState>,
    caller: Caller,
    PathId(enforcer): PathId<EnforcerId>,
) -> Result<Response, ApiError> {
    Ok(response::json(StatusCode::OK, app.gateway.presence_of(&caller.tenant, &enforcer).await?))
}
