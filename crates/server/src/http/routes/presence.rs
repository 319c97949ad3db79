//! `/v1/presence/enforcers`.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::id::EnforcerId;

use crate::{
    app::Shared,
    auth::Caller,
    http::{answer, error_response::Refusal, params::InPath},
};

pub(crate) async fn list(State(app): State<Shared>, caller: Caller) -> Result<Response, Refusal> {
    Ok(answer::json(StatusCode::OK, app.gateway.presence_list(&caller.tenant).await?))
}

pub(crate) async fn one(
    State(app): State<Shared>,
    caller: Caller,
    InPath(enforcer): InPath<EnforcerId>,
) -> Result<Response, Refusal> {
    Ok(answer::json(StatusCode::OK, app.gateway.presence_of(&caller.tenant, &enforcer).await?))
}
