//! `/v1/pairing`.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::{
    failure::Failure,
    id::PairingNonce,
    pairing::{CompleteRequest, InitiateRequest, PairingCode},
};

use crate::{
    app::Shared,
    auth::{Approver, Caller, Enforcer},
    http::{answer, error_response::Refusal, params::InPath, received::Received},
};

pub(crate) async fn initiate(
    State(app): State<Shared>,
    caller: Enforcer,
    received: Received,
) -> Result<Response, Refusal> {
    let request = received.bare::<InitiateRequest>()?.into_view();
    caller.acting_as(&app, &request.enforcer_id)?;
    Ok(answer::json(StatusCode::OK, app.gateway.initiate_pairing(&caller.tenant, request, &app.codes).await?))
}

pub(crate) async fn resolve(
    State(app): State<Shared>,
    caller: Approver,
    InPath(code): InPath<String>,
) -> Result<Response, Refusal> {
    // What can't be a code leads as little anywhere as one that is not known.
    let code: PairingCode = code.parse().map_err(|_| Failure::NotFound)?;
    let approver = caller.only.as_ref();
    let resolved =
        app.gateway.resolve_pairing(&caller.tenant, &caller.principal, approver, code, &app.codes).await?;
    Ok(answer::json(StatusCode::OK, resolved))
}

pub(crate) async fn status(
    State(app): State<Shared>,
    caller: Caller,
    InPath(nonce): InPath<PairingNonce>,
) -> Result<Response, Refusal> {
    Ok(answer::json(
        StatusCode::OK,
        app.gateway.pairing_status(&caller.tenant, caller.viewer(), &nonce).await?,
    ))
}

pub(crate) async fn complete(
    State(app): State<Shared>,
    caller: Approver,
    received: Received,
) -> Result<Response, Refusal> {
    let request = received.bare::<CompleteRequest>()?.into_view();
    caller.acting_as(&request.approver_id)?;
    Ok(answer::json(StatusCode::OK, app.gateway.complete_pairing(&caller.tenant, &request).await?))
}
