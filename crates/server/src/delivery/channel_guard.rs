//! An enforcer's channel in the store, open until its guard is dropped.

use std::time::Duration;

use countersign_core::{Error, Gateway, model::channels::ChannelNumber, use_cases::channels::ChannelRouting};
use countersign_wire::{
    failure::Failure,
    id::{EnforcerId, TenantId},
};
use tokio::time::sleep;

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

/// The first delay before closing is retried, and the longest.
const CLOSE_RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

impl Drop for ChannelGuard {
    fn drop(&mut self) {
        let (gateway, tenant): (Gateway, _) = (self.app.gateway.clone(), self.tenant.clone());
        let (enforcer, number) = (self.enforcer.clone(), self.number);
        self.app.presence.forget(&tenant, &enforcer);
        tokio::spawn(async move {
            // Until it succeeds: this node is alive, so its open channels count.
            let (mut delay, longest) = CLOSE_RETRY_DELAY;
            while let Err(error) = gateway.close_channel(&tenant, &enforcer, number).await {
                tracing::debug!(%error, "a channel was not closed in the store; it will be retried");
                sleep(delay).await;
                delay = longest.min(delay * 2);
            }
        });
    }
}
