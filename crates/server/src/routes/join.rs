//! `/platform/v1/join`, the one endpoint that makes a credential without one.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::{FromMembers, Members, key_nonce::KeyNonce};

use super::platform::NewKey;
use crate::{
    auth::Newcomer,
    error::ApiError,
    rest::{body::RequestBody, response},
    state::SharedState,
};

struct JoinRequest {
    /// Whatever was sent: one that is malformed gets the answer of any other that is invalid.
    invitation: String,
    nonce: KeyNonce,
}

impl FromMembers<'_> for JoinRequest {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        let request = Self { invitation: members.required("invitation")?, nonce: members.required("nonce")? };
        members.close()?;
        Ok(request)
    }
}

pub(crate) async fn join(
    State(app): State<SharedState>,
    newcomer: Newcomer,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let JoinRequest { invitation, nonce } = body.bare::<JoinRequest>()?.into_view();
    match app.joins.join(&invitation, &nonce).await.map_err(ApiError::from) {
        Ok(made) => response::json(StatusCode::CREATED, NewKey::from(&made)),
        Err(error) => {
            app.rates.count_failed_join(newcomer.address, &error)?;
            Err(error)
        }
    }
}
