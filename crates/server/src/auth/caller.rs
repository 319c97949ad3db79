//! The caller, from the request's credential, as the role that a handler acts for.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use countersign_core::model::{credential::Role, viewer::Viewer};
use countersign_wire::{
    api_key::ApiKey,
    failure::Failure,
    id::{ApproverId, EnforcerId, TenantId},
    presence::Transport,
};

use crate::{
    api_keys::CheckedKey,
    error::ApiError,
    limits::{ClientAddress, ClientName},
    state::{AppState, SharedState},
};

// CONTRIBUTING: add an endpoint, step 2
/// A caller with an active credential.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) tenant: TenantId,
    pub(crate) role: Role,
    /// The key id of the credential.
    pub(crate) principal: Arc<str>,
    /// Whether it presented a ticket instead of a key.
    pub(crate) by_ticket: bool,
    /// How its presence is recorded.
    pub(crate) transport: Transport,
}

/// A caller that may act as an enforcer: as one, or as any of the tenant.
#[derive(Debug, Clone)]
pub(crate) struct Enforcer {
    pub(crate) tenant: TenantId,
    pub(crate) principal: Arc<str>,
    pub(crate) only: Option<EnforcerId>,
    transport: Transport,
}

/// A caller that may act as an approver: as one, or as any of the tenant.
#[derive(Debug, Clone)]
pub(crate) struct Approver {
    pub(crate) tenant: TenantId,
    pub(crate) principal: Arc<str>,
    pub(crate) only: Option<ApproverId>,
}

/// A caller that runs the gateway.
#[derive(Debug, Clone)]
pub(crate) struct GatewayOperator {
    pub(crate) tenant: TenantId,
}

/// A caller that runs the tenant.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    pub(crate) tenant: TenantId,
}

/// Somebody without a credential, who wants one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Newcomer {
    /// `None` where it is not known.
    pub(crate) address: Option<ClientAddress>,
}

/// The very key that the caller presented, for what a key does with itself. A ticket is no key.
#[derive(Debug)]
pub(crate) struct OwnKey(pub(crate) ApiKey);

impl Caller {
    pub(crate) fn enforcer(&self) -> Result<Enforcer, ApiError> {
        match &self.role {
            Role::Enforcer(only) => {
                let (tenant, principal) = (self.tenant.clone(), self.principal.clone());
                Ok(Enforcer { tenant, principal, only: only.clone(), transport: self.transport })
            }
            _ => Err(Failure::Forbidden.into()),
        }
    }

    pub(crate) fn approver(&self) -> Result<Approver, ApiError> {
        match &self.role {
            Role::Approver(only) => {
                let (tenant, principal) = (self.tenant.clone(), self.principal.clone());
                Ok(Approver { tenant, principal, only: only.clone() })
            }
            _ => Err(Failure::Forbidden.into()),
        }
    }

    /// As whom this caller reads exchanges.
    pub(crate) fn viewer(&self) -> Viewer<'_> {
        match &self.role {
            Role::Enforcer(Some(enforcer)) => Viewer::Enforcer(enforcer),
            Role::Enforcer(None) => Viewer::AnyEnforcer,
            Role::Approver(Some(approver)) => Viewer::Approver(approver),
            Role::Approver(None) => Viewer::AnyApprover,
            Role::Operator | Role::GatewayOperator => Viewer::Operator,
        }
    }

    /// From an API key, on a WebSocket from a ticket, or from the certificate of the connection. What the request says counts
    /// before the certificate, even if it is wrong.
    pub(super) async fn from_credential(app: &AppState, parts: &Parts) -> Result<Self, ApiError> {
        let headers = &parts.headers;
        let key = match presented_key(headers, app.live.current().allow_basic) {
            Some(key) => key,
            None if names_credential(headers) => return Err(Failure::Unauthenticated.into()),
            None if parts.uri.path() == "/v1/ws" && offered_ticket(headers).is_some() => {
                return Self::from_ticket(app, headers).await;
            }
            None => return Self::from_certificate(app, parts.extensions.get::<ClientName>()).await,
        };
        let CheckedKey { role, .. } = app.keys.active(&key).await?.ok_or(Failure::Unauthenticated)?;
        let (tenant, principal) = (key.tenant().clone(), key.key_id().as_str().into());
        Ok(Self { tenant, role, principal, by_ticket: false, transport: Transport::Poll })
    }

    /// An authority has vouched for the certificate, and the handshake has shown that the client has its key.
    async fn from_certificate(app: &AppState, name: Option<&ClientName>) -> Result<Self, ApiError> {
        let name = name.ok_or(Failure::Unauthenticated)?;
        let active = app.keys.active_certificate(name).await?;
        let CheckedKey { role, .. } = active.ok_or(Failure::Unauthenticated)?;
        let (tenant, principal) = (name.tenant.clone(), name.key_id().as_str().into());
        Ok(Self { tenant, role, principal, by_ticket: false, transport: Transport::Poll })
    }

    /// A ticket is accepted as the subprotocol of a WebSocket, and nowhere else.
    async fn from_ticket(app: &AppState, headers: &HeaderMap) -> Result<Self, ApiError> {
        let ticket = offered_ticket(headers).and_then(|offered| offered.strip_prefix("ticket."));
        let redeemed = match ticket {
            Some(ticket) => app.gateway.redeem_ticket(ticket, &app.mac_key).await?,
            None => None,
        };
        let (tenant, ticket) = redeemed.ok_or(Failure::Unauthenticated)?;
        // Whether the key behind it is still valid is checked where its connection begins, as for all that are held.
        let (role, principal) = (ticket.role, ticket.principal.into());
        Ok(Self { tenant, role, principal, by_ticket: true, transport: Transport::Poll })
    }
}

/// The subprotocol that is a ticket, among those that a WebSocket offers.
pub(crate) fn offered_ticket(headers: &HeaderMap) -> Option<&str> {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    let words = offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    words.map(str::trim).find(|word| word.starts_with("ticket."))
}

/// Whether the request itself says who calls, however wrongly.
fn names_credential(headers: &HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION) || headers.contains_key("x-api-key")
}

/// The API key, from `Authorization: Bearer` or `X-Api-Key`, and where that is allowed from `Authorization: Basic`.
fn presented_key(headers: &HeaderMap, allow_basic: bool) -> Option<ApiKey> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return headers.get("x-api-key")?.to_str().ok()?.trim().parse().ok();
    };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return token.trim().parse().ok();
    }
    if !allow_basic || !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(token.trim()).ok()?).ok()?;
    let (key_id, key) = text.split_once(':')?;
    let key: ApiKey = key.parse().ok()?;
    (key.key_id().as_str() == key_id).then_some(key)
}

impl Enforcer {
    /// The enforcer that the request names; it must be the credential's.
    pub(crate) fn acting_as(&self, app: &AppState, named: &EnforcerId) -> Result<EnforcerId, ApiError> {
        if self.only.as_ref().is_some_and(|only| only != named) {
            return Err(Failure::Forbidden.into());
        }
        app.presence.seen(&self.tenant, named, self.transport);
        Ok(named.clone())
    }

    /// The enforcer of a request that names none.
    pub(crate) fn itself(&self, app: &AppState) -> Result<EnforcerId, ApiError> {
        let itself = match &self.only {
            Some(only) => only.clone(),
            None => EnforcerId::new("dev-enforcer").map_err(|_| Failure::Internal)?,
        };
        app.presence.seen(&self.tenant, &itself, self.transport);
        Ok(itself)
    }

    /// As whom this caller reads exchanges.
    pub(crate) fn viewer(&self) -> Viewer<'_> {
        self.only.as_ref().map_or(Viewer::AnyEnforcer, Viewer::Enforcer)
    }
}

impl Approver {
    /// The approver that the request names; it must be the credential's.
    pub(crate) fn acting_as(&self, named: &ApproverId) -> Result<ApproverId, ApiError> {
        match &self.only {
            Some(only) if only != named => Err(Failure::Forbidden.into()),
            _ => Ok(named.clone()),
        }
    }

    /// The approver of a request that names none.
    pub(crate) fn itself(&self) -> Result<ApproverId, ApiError> {
        match &self.only {
            Some(only) => Ok(only.clone()),
            None => ApproverId::new("dev-approver").map_err(|_| Failure::Internal.into()),
        }
    }
}

/// Reads the caller that the route's group has authenticated. Without one the route is in the wrong group.
fn authenticated(parts: &Parts) -> Result<&Caller, ApiError> {
    parts.extensions.get::<Caller>().ok_or_else(|| Failure::Internal.into())
}

impl FromRequestParts<SharedState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &SharedState) -> Result<Self, ApiError> {
        authenticated(parts).cloned()
    }
}

impl FromRequestParts<SharedState> for Newcomer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &SharedState) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().copied().ok_or_else(|| Failure::Internal.into())
    }
}

impl FromRequestParts<SharedState> for OwnKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, ApiError> {
        let key = presented_key(&parts.headers, app.live.current().allow_basic);
        match (authenticated(parts)?.by_ticket, key) {
            (false, Some(key)) => Ok(Self(key)),
            _ => Err(Failure::Forbidden.into()),
        }
    }
}

impl FromRequestParts<SharedState> for Enforcer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &SharedState) -> Result<Self, ApiError> {
        authenticated(parts)?.enforcer()
    }
}

impl FromRequestParts<SharedState> for Approver {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &SharedState) -> Result<Self, ApiError> {
        authenticated(parts)?.approver()
    }
}

/// A caller that is one of the two sides of exchanges, and not the operator.
#[derive(Debug)]
pub(crate) struct Participant(pub(crate) Caller);

impl FromRequestParts<SharedState> for Participant {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &SharedState) -> Result<Self, ApiError> {
        match authenticated(parts)? {
            Caller { role: Role::Operator | Role::GatewayOperator, .. } => Err(Failure::Forbidden.into()),
            caller => Ok(Self(caller.clone())),
        }
    }
}

impl FromRequestParts<SharedState> for GatewayOperator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &SharedState) -> Result<Self, ApiError> {
        match authenticated(parts)? {
            Caller { tenant, role: Role::GatewayOperator, .. } => Ok(Self { tenant: tenant.clone() }),
            _ => Err(Failure::Forbidden.into()),
        }
    }
}

impl FromRequestParts<SharedState> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &SharedState) -> Result<Self, ApiError> {
        match authenticated(parts)? {
            Caller { tenant, role: Role::Operator, .. } => Ok(Self { tenant: tenant.clone() }),
            _ => Err(Failure::Forbidden.into()),
        }
    }
}
