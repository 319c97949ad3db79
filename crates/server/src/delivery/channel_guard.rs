//! An enforcer's channel in the store, open until its guard is dropped.

use countersign_core::{Error, model::channels::ChannelNumber, use_cases::channels::ChannelRouting};
use countersign_wire::{
    failure::Failure,
    id::{EnforcerId, TenantId},
};

use super::subscriber::Subscriber;
use crate::state::SharedState;

/// An enforcer's channel, open until it is dropped.
pub(super) struct ChannelGuard {
    app: SharedState,
    tenant: TenantId,
    enforcer: EnforcerId,
    number: ChannelNumber,
}

impl ChannelGuard {
    /// In a task of its own: if the client disconnects meanwhile, the channel is closed again, and does not stay
    /// registered while nobody reads it.
    pub(super) async fn open(
        app: SharedState,
        subscriber: &Subscriber,
        enforcer: &EnforcerId,
    ) -> Result<Self, Error> {
        let (tenant, transport) = (subscriber.tenant.clone(), subscriber.transport);
        let enforcer = enforcer.clone();
        let opening = tokio::spawn(async move {
            let number = app.gateway.open_channel(&tenant, &enforcer, &app.node, transport).await?;
            Ok(Self { app, tenant, enforcer, number })
        });
        opening.await.unwrap_or_else(|_| Err(Failure::Internal.into()))
    }

    /// Which messages this channel has to send, if this node knows.
    pub(super) fn known_routing(&self) -> Option<ChannelRouting> {
        self.app.gateway.known_routing(&self.tenant, &self.enforcer, self.number)
    }

    /// Which messages this channel has to send; `None` if the store has dropped it.
    pub(super) async fn routing(&self) -> Result<Option<ChannelRouting>, Error> {
        let gateway = &self.app.gateway;
        gateway.channel_routing(&self.tenant, &self.enforcer, &self.app.node, self.number).await
    }
}

impl Drop for ChannelGuard {
    fn drop(&mut self) {
        self.app.presence.forget(&self.tenant, &self.enforcer);
        self.app.gateway.close_channel_until_done(&self.tenant, &self.enforcer, self.number);
    }
}
