//! `/v1/pairing`.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::{
    failure::Failure,
    id::PairingNonce,
    pairing::{CompleteRequest, InitiateRequest, PairingCode},
};

use crate::{
    auth::{Approver, Caller, Enforcer},
    error::ApiError,
    rest::{body::RequestBody, params::PathId, response},
    state::SharedState,
};

pub(crate) async fn initiate(
    State(app): State<SharedState>,
    caller: Enforcer,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let request = body.bare::<InitiateRequest>()?.into_view();
    caller.acting_as(&app, &request.enforcer_id)?;
    response::json(StatusCode::OK, app.gateway.initiate_pairing(&caller.tenant, request, &app.codes).await?)
}

pub(crate) async fn resolve(
    State(app): State<SharedState>,
    caller: Approver,
    PathId(code): PathId<String>,
) -> Result<Response, ApiError> {
    // What can't be a code leads as little anywhere as one that is not known.
    let code: PairingCode = code.parse().map_err(|_| Failure::NotFound)?;
    let approver = caller.only.as_ref();
    let resolved =
        app.gateway.resolve_pairing(&caller.tenant, &caller.principal, approver, code, &app.codes).await?;
    response::json(StatusCode::OK, resolved)
}

pub(crate) async fn status(
    State(app): State<SharedState>,
    caller: Caller,
    PathId(nonce): PathId<PairingNonce>,
) -> Result<Response, ApiError> {
    response::json(StatusCode::OK, app.gateway.pairing_status(&caller.tenant, caller.viewer(), &nonce).await?)
}

pub(crate) async fn complete(
    State(app): State<SharedState>,
    caller: Approver,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let request = body.bare::<CompleteRequest>()?.into_view();
    caller.acting_as(&request.approver_id)?;
    response::json(StatusCode::OK, app.gateway.complete_pairing(&caller.tenant, &request).await?)
}
