//! `/platform/v1/join`, the one endpoint that makes a credential without one, and what an invitation is for.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_wire::{
    FromMembers, Label, Members, id::TenantId, key_nonce::KeyNonce, timestamp::Timestamp,
};
use serde::Serialize;

use super::platform::{NewKey, RoleAndId};
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
            app.live.current().rates.count_failed_join(newcomer.address, &error)?;
            Err(error)
        }
    }
}

struct DescribeRequest {
    invitation: String,
}

impl FromMembers<'_> for DescribeRequest {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        let request = Self { invitation: members.required("invitation")? };
        members.close()?;
        Ok(request)
    }
}

/// The gateway's word: nobody has signed it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DescribedInvitation<'a> {
    tenant: &'a TenantId,
    #[serde(flatten)]
    role: RoleAndId<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a Label>,
    expires_at: Timestamp,
}

/// A `POST`, so that the invitation is in no path, which is logged.
pub(crate) async fn describe(
    State(app): State<SharedState>,
    newcomer: Newcomer,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let DescribeRequest { invitation } = body.bare::<DescribeRequest>()?.into_view();
    match app.joins.describe(&invitation).await.map_err(ApiError::from) {
        Ok((tenant, described)) => {
            let (role, label) = ((&described.spec.role).into(), described.spec.label.as_ref());
            let expires_at = described.expires_at;
            response::json(StatusCode::OK, DescribedInvitation { tenant: &tenant, role, label, expires_at })
        }
        Err(error) => {
            app.live.current().rates.count_failed_join(newcomer.address, &error)?;
            Err(error)
        }
    }
}
