//! Which callers a route admits.

use axum::http::request::Parts;
use countersign_core::model::credential::Role;
use countersign_wire::{failure::Failure, presence::Transport};

use super::caller::{Caller, Newcomer};
use crate::{
    error::ApiError,
    limits::{ClientAddress, Peer},
    state::AppState,
};

/// Which callers a route admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Anybody, without a credential.
    Public,
    /// Whoever has an invitation. It is in the body, and the handler checks it.
    Invited,
    /// Any active credential of a tenant, whatever its role.
    Authenticated,
    Enforcer,
    Approver,
    /// Either side of exchanges, and not the operator.
    Participant,
    Operator,
    /// Who runs the gateway itself, and nobody of a tenant.
    GatewayOperator,
}

impl Access {
    fn admits(self, role: &Role) -> bool {
        match self {
            Self::Public | Self::Invited => true,
            Self::Authenticated => *role != Role::GatewayOperator,
            Self::Enforcer => matches!(role, Role::Enforcer(_)),
            Self::Approver => matches!(role, Role::Approver(_)),
            Self::Participant => matches!(role, Role::Enforcer(_) | Role::Approver(_)),
            Self::Operator => *role == Role::Operator,
            Self::GatewayOperator => *role == Role::GatewayOperator,
        }
    }
}

/// Checks the credential, the rates and the role, and leaves the [`Caller`] in the request for the extractors.
pub(crate) async fn authenticate(app: &AppState, access: Access, parts: &mut Parts) -> Result<(), ApiError> {
    if access == Access::Public {
        return Ok(());
    }
    let live = app.live.current();
    let peer = parts.extensions.get::<Peer>().copied();
    let client = peer.and_then(|peer| ClientAddress::behind(peer, &live.proxies, &parts.headers));
    live.rates.admit_address(client)?;
    if access == Access::Invited {
        parts.extensions.insert(Newcomer { address: client });
        return Ok(());
    }
    let caller = match Caller::from_credential(app, parts).await {
        Ok(caller) => caller,
        Err(error) => {
            live.rates.count_failed_authentication(client, &error)?;
            return Err(error);
        }
    };
    live.rates.admit(&caller.tenant, &caller.principal)?;
    if let Role::Enforcer(Some(enforcer)) = &caller.role {
        app.presence.seen(&caller.tenant, enforcer, Transport::Poll);
    }
    if !access.admits(&caller.role) {
        return Err(Failure::Forbidden.into());
    }
    parts.extensions.insert(caller);
    Ok(())
}
