//! What is not part of the protocol: running a tenant.

use std::time::Duration;

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_core::{
    model::{
        credential::{Credential, Role},
        policy::Policy,
    },
    use_cases::credentials::{self, KeySpec},
};
use countersign_wire::{
    FromMembers, Label, Members,
    api_key::KeyId,
    failure::Failure,
    id::{ApproverId, EnforcerId, RequestId, TenantId},
    timestamp::Timestamp,
};
use serde::Serialize;

use crate::{
    auth::{Caller, Operator},
    error::{ApiError, ForRequest as _},
    rest::{
        body::RequestBody,
        cursor::RecordsCursor,
        params::{PathId, QueryParams},
        response,
    },
    state::SharedState,
};

// CONTRIBUTING: add an endpoint, step 2
/// What a key is to be.
struct KeyRequest(KeySpec);

impl FromMembers<'_> for KeyRequest {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        let role: String = members.required("role")?;
        let any = members.optional("any")?.unwrap_or(false);
        let stated = members.contains("id");
        if role != "operator" && stated == any {
            return Err(countersign_wire::Error::breaks(
                "id",
                "must be given unless any is true, and only then",
            ));
        }
        let role = match role.as_str() {
            "enforcer" => Role::Enforcer(members.optional("id")?),
            "approver" => Role::Approver(members.optional("id")?),
            "operator" => Role::Operator,
            _ => {
                return Err(countersign_wire::Error::breaks(
                    "role",
                    "must be enforcer, approver or operator",
                ));
            }
        };
        let (label, expires_at) = (members.optional("label")?, members.optional("expiresAt")?);
        members.close()?;
        Ok(Self(KeySpec { role, label, expires_at }))
    }
}

#[derive(Serialize)]
pub(super) struct RoleAndId<'a> {
    pub(super) role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
}

impl<'a> From<&'a Role> for RoleAndId<'a> {
    fn from(role: &'a Role) -> Self {
        match role {
            Role::Enforcer(id) => Self { role: "enforcer", id: id.as_ref().map(EnforcerId::as_str) },
            Role::Approver(id) => Self { role: "approver", id: id.as_ref().map(ApproverId::as_str) },
            Role::Operator => Self { role: "operator", id: None },
            Role::GatewayOperator => Self { role: "gatewayOperator", id: None },
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewKey<'a> {
    key_id: &'a str,
    key: String,
    tenant: &'a TenantId,
    #[serde(flatten)]
    role: RoleAndId<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

impl<'a> From<&'a credentials::NewKey> for NewKey<'a> {
    fn from(made: &'a credentials::NewKey) -> Self {
        Self {
            key_id: made.key.key_id().as_str(),
            key: made.key.expose(),
            tenant: made.key.tenant(),
            role: (&made.spec.role).into(),
            label: made.spec.label.as_ref(),
            expires_at: made.spec.expires_at,
        }
    }
}

pub(crate) async fn create_key(
    State(app): State<SharedState>,
    caller: Operator,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let KeyRequest(spec) = body.bare::<KeyRequest>()?.into_view();
    let made = app.gateway.create_key(&caller.tenant, spec, &app.mac_key).await?;
    response::json(StatusCode::CREATED, NewKey::from(&made))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedKey<'a> {
    key_id: &'a str,
    #[serde(flatten)]
    role: RoleAndId<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a Label>,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Timestamp>,
    /// The key whose place it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    rotated_from: Option<&'a str>,
    /// The key that took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    rotated_to: Option<&'a str>,
}

fn listed((key_id, key): &(KeyId, Credential)) -> ListedKey<'_> {
    ListedKey {
        key_id: key_id.as_str(),
        role: (&key.role).into(),
        label: key.label.as_ref(),
        created_at: key.created_at,
        expires_at: key.expires_at,
        revoked_at: key.revoked_at,
        rotated_from: key.rotated_from.as_deref(),
        rotated_to: key.rotation.as_ref().map(|rotation| rotation.successor.key_id.as_str()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedKeys<'a> {
    keys: Vec<ListedKey<'a>>,
    next_cursor: Option<String>,
}

pub(crate) async fn keys(
    State(app): State<SharedState>,
    caller: Operator,
    query: QueryParams,
) -> Result<Response, ApiError> {
    let cursors = RecordsCursor { tenant: &caller.tenant, list: "keys" };
    let after = cursors.after(&app.secret, &query)?;
    let page = app.gateway.keys(&caller.tenant, after.as_deref(), query.limit()?).await?;
    let next_cursor = page.next.map(|next| cursors.cursor(&app.secret, &next));
    let keys = page.items.iter().map(listed).collect();
    response::json(StatusCode::OK, ListedKeys { keys, next_cursor })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RevokedKey<'a> {
    key_id: &'a str,
    revoked_at: Timestamp,
}

pub(crate) async fn revoke_key(
    State(app): State<SharedState>,
    caller: Operator,
    PathId(key_id): PathId<KeyId>,
) -> Result<Response, ApiError> {
    let revoked_at = app.gateway.revoke_key(&caller.tenant, &key_id).await?;
    response::json(StatusCode::OK, RevokedKey { key_id: key_id.as_str(), revoked_at })
}

/// The policy as people write it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyText {
    require_sealed: bool,
    require_registered_signer: bool,
    require_idempotency_key: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_life_seconds: Option<u64>,
}

impl FromMembers<'_> for PolicyText {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        let max_life: Option<f64> = members.optional("maxLifeSeconds")?;
        let whole = max_life.is_none_or(|seconds| seconds.fract() == 0.0 && (1.0..=1e9).contains(&seconds));
        if !whole {
            return Err(countersign_wire::Error::breaks(
                "maxLifeSeconds",
                "must be a whole number from 1 to 10^9",
            ));
        }
        let policy = Self {
            require_sealed: members.optional("requireSealed")?.unwrap_or(false),
            require_registered_signer: members.optional("requireRegisteredSigner")?.unwrap_or(false),
            require_idempotency_key: members.optional("requireIdempotencyKey")?.unwrap_or(false),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 10^9, whole")]
            max_life_seconds: max_life.map(|seconds| seconds as u64),
        };
        members.close()?;
        Ok(policy)
    }
}

impl From<Policy> for PolicyText {
    fn from(policy: Policy) -> Self {
        Self {
            require_sealed: policy.require_sealed,
            require_registered_signer: policy.require_registered_signer,
            require_idempotency_key: policy.require_idempotency_key,
            max_life_seconds: policy.max_life.map(|life| life.as_secs()),
        }
    }
}

pub(crate) async fn policy(State(app): State<SharedState>, caller: Operator) -> Result<Response, ApiError> {
    response::json(StatusCode::OK, PolicyText::from(app.gateway.policy(&caller.tenant).await?))
}

pub(crate) async fn set_policy(
    State(app): State<SharedState>,
    caller: Operator,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let text = body.bare::<PolicyText>()?.into_view();
    let policy = Policy {
        require_sealed: text.require_sealed,
        require_registered_signer: text.require_registered_signer,
        require_idempotency_key: text.require_idempotency_key,
        max_life: text.max_life_seconds.map(Duration::from_secs),
        ..Policy::default()
    };
    app.gateway.set_policy(&caller.tenant, &policy).await?;
    response::json(StatusCode::OK, text)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewTicket {
    ticket: String,
    expires_at: Timestamp,
}

/// For browsers, which can't set headers on a WebSocket.
pub(crate) async fn create_ticket(
    State(app): State<SharedState>,
    caller: Caller,
) -> Result<Response, ApiError> {
    if matches!(caller.role, Role::Operator | Role::GatewayOperator) {
        return Err(Failure::Forbidden.into());
    }
    let Caller { tenant, role, principal, .. } = caller;
    let made = app.gateway.create_ticket(&tenant, role, principal.to_string(), &app.mac_key).await?;
    let (ticket, expires_at) = made;
    response::json(StatusCode::OK, NewTicket { ticket, expires_at })
}

pub(crate) async fn cancel(
    State(app): State<SharedState>,
    caller: Operator,
    PathId(request_id): PathId<RequestId>,
) -> Result<Response, ApiError> {
    let accepted = app.gateway.cancel(&caller.tenant, &request_id).await.for_request(&request_id)?;
    response::json(StatusCode::OK, accepted)
}
