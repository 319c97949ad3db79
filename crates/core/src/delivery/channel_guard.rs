//! An enforcer's channel in the store, open until its guard is dropped.

use std::sync::Arc;

use countersign_wire::{
    failure::Failure,
    id::{EnforcerId, TenantId},
};

use super::subscriber::Subscriber;
use crate::{Error, Gateway, model::channels::ChannelId, use_cases::channels::ChannelRouting};

/// Whoever has to know that a channel closes.
pub trait ChannelObserver: Send + Sync {
    /// A channel of the enforcer is about to be closed in the store.
    fn channel_closes(&self, tenant: &TenantId, enforcer: &EnforcerId);
}

/// An enforcer's channel, open until it is dropped.
pub struct ChannelGuard {
    gateway: Gateway,
    observer: Arc<dyn ChannelObserver>,
    tenant: TenantId,
    enforcer: EnforcerId,
    id: ChannelId,
}

impl ChannelGuard {
    /// In a task of its own: if the client disconnects meanwhile, the channel is closed again, and does not stay
    /// registered while nobody reads it.
    pub async fn open(
        gateway: &Gateway,
        subscriber: &Subscriber,
        enforcer: &EnforcerId,
        observer: Arc<dyn ChannelObserver>,
    ) -> Result<Self, Error> {
        let (tenant, transport) = (subscriber.tenant.clone(), subscriber.transport);
        let (gateway, enforcer) = (gateway.clone(), enforcer.clone());
        let opening = tokio::spawn(async move {
            let id = gateway.open_channel(&tenant, &enforcer, gateway.node(), transport).await?;
            Ok(Self { gateway, observer, tenant, enforcer, id })
        });
        opening.await.unwrap_or_else(|_| Err(Failure::Internal.into()))
    }

    pub fn id(&self) -> &ChannelId {
        &self.id
    }

    /// Which messages this channel has to send, if this node knows.
    pub(super) fn known_routing(&self) -> Option<ChannelRouting> {
        self.gateway.known_routing(&self.tenant, &self.enforcer, &self.id)
    }

    /// Which messages this channel has to send; `None` if the store has dropped it.
    pub(super) async fn routing(&self) -> Result<Option<ChannelRouting>, Error> {
        let gateway = &self.gateway;
        gateway.channel_routing(&self.tenant, &self.enforcer, gateway.node(), &self.id).await
    }
}

impl Drop for ChannelGuard {
    fn drop(&mut self) {
        self.observer.channel_closes(&self.tenant, &self.enforcer);
        self.gateway.close_channel_until_done(&self.tenant, &self.enforcer, &self.id);
    }
}

impl std::fmt::Debug for ChannelGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelGuard").field("id", &self.id).finish_non_exhaustive()
    }
}
