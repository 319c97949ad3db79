//! Whether a credential is still active, for connections that are held open with it.

use std::sync::Arc;

use countersign_core::notify::Listener;
use countersign_wire::id::TenantId;

use crate::state::SharedState;

/// Listens to the record of a credential.
pub(crate) struct RevocationWatch {
    app: SharedState,
    tenant: TenantId,
    principal: Arc<str>,
    listener: Listener,
}

impl RevocationWatch {
    /// Listens from now on. Check [`RevocationWatch::is_active`] after this, and not before.
    pub(crate) fn new(app: &SharedState, tenant: &TenantId, principal: &Arc<str>) -> Self {
        let listener = app.gateway.listen_to_key(tenant, principal);
        Self { app: app.clone(), tenant: tenant.clone(), principal: principal.clone(), listener }
    }

    /// Returns when the credential may have been revoked. Holds no permit, so it need not be polled all the time: a
    /// future that waits for a permit and is not polled would keep the permit from others.
    pub(crate) async fn changed(&self) {
        self.listener.rung().await;
    }

    /// Returns when the credential is revoked. Unlike [`RevocationWatch::changed`] it takes read permits, so it must be
    /// polled all the time.
    pub(crate) async fn revoked(&self) {
        loop {
            self.changed().await;
            if !self.is_active().await {
                return;
            }
        }
    }

    /// Whether the credential is active. An unavailable store does not count against the client.
    pub(crate) async fn is_active(&self) -> bool {
        let _permit = self.app.push_reads.acquire().await;
        // Boxed, so that an idle connection does not carry the memory for it.
        let active = Box::pin(self.app.gateway.key_is_active(&self.tenant, &self.principal)).await;
        !matches!(active, Ok(false))
    }
}
