//! `/platform/v1/keys/rotate`: a key replaces itself.

use std::time::Duration;

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_core::use_cases::rotate::DEFAULT_OVERLAP;
use countersign_wire::{FromMembers, Members, key_nonce::KeyNonce, timestamp::Timestamp};
use serde::Serialize;

use super::platform::NewKey;
use crate::{
    auth::OwnKey,
    error::ApiError,
    rest::{
        body::{RequestBody, seconds},
        response,
    },
    state::SharedState,
};

struct RotateRequest {
    nonce: KeyNonce,
    overlap: Duration,
}

impl FromMembers<'_> for RotateRequest {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        let nonce = members.required("nonce")?;
        let rule = "must be a whole number from 0 to 604800";
        let overlap = seconds(members, "overlapSeconds", 0..=604_800, rule)?;
        members.close()?;
        Ok(Self { nonce, overlap: overlap.unwrap_or(DEFAULT_OVERLAP) })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RotatedKey<'a> {
    #[serde(flatten)]
    key: NewKey<'a>,
    previous_expires_at: Timestamp,
}

pub(crate) async fn rotate(
    State(app): State<SharedState>,
    OwnKey(key): OwnKey,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let RotateRequest { nonce, overlap } = body.bare::<RotateRequest>()?.into_view();
    let rotated = app.gateway.rotate_key(&key, &nonce, overlap, &app.mac_key).await?;
    let previous_expires_at = rotated.previous_expires_at;
    response::json(StatusCode::CREATED, RotatedKey { key: NewKey::from(&rotated.new), previous_expires_at })
}
