//! Whether a credential still stands, for whoever holds a connection with it.

use std::sync::Arc;

use countersign_core::notify::Listener;
use countersign_wire::id::TenantId;

use crate::app::Shared;

/// Listens to the record of a credential.
pub(crate) struct Standing {
    app: Shared,
    tenant: TenantId,
    principal: Arc<str>,
    listener: Listener,
}

impl Standing {
    /// Listens from now on. Ask whether it stands after that, and not before.
    pub(crate) fn new(app: &Shared, tenant: &TenantId, principal: &Arc<str>) -> Self {
        let listener = app.gateway.listen_to_key(tenant, principal);
        Self { app: app.clone(), tenant: tenant.clone(), principal: principal.clone(), listener }
    }

    /// Returns when it may have been revoked. Waits for nothing but that, so it may be left alone for as long as somebody
    /// likes: whoever waits for a turn and is not looked at would keep the turn from others.
    pub(crate) async fn changed(&self) {
        self.listener.rung().await;
    }

    /// Returns when it is revoked. Unlike [`Standing::changed`] it takes turns, so it has to be looked at all the time.
    pub(crate) async fn voided(&self) {
        loop {
            self.changed().await;
            if !self.holds().await {
                return;
            }
        }
    }

    /// Whether it stands. A store that is away says nothing against the client.
    pub(crate) async fn holds(&self) -> bool {
        let _turn = self.app.push_reads.acquire().await;
        // Boxed, so that who waits does not carry the room for it.
        let stands = Box::pin(self.app.gateway.key_is_active(&self.tenant, &self.principal)).await;
        !matches!(stands, Ok(false))
    }
}
