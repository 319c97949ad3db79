//! What one channel has to send to its client, whichever transport it uses, within the limits of this node.

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use countersign_core::delivery::{subscriber::Subscriber, subscription::SubscriptionEnded};
use countersign_core::{
    Error,
    delivery::{
        channel_guard::{ChannelGuard, ChannelObserver},
        message::Party,
        subscription,
    },
};
use countersign_wire::id::{EnforcerId, TenantId};

use crate::{
    limits::FairSemaphore,
    state::{AppState, SharedState},
};

pub(crate) type Subscription = subscription::Subscription<FairSemaphore>;

/// Opens the channel. `after` is the position that a client reports; empty means from the start.
pub(crate) async fn subscribe(
    app: &SharedState,
    subscriber: Subscriber,
    after: &[u64],
) -> Result<Subscription, Error> {
    let channel = match &subscriber.party {
        Party::Enforcer(enforcer) => {
            let observer = Arc::clone(app) as Arc<dyn ChannelObserver>;
            Some(ChannelGuard::open(&app.gateway, &subscriber, enforcer, observer).await?)
        }
        Party::Approver(_) => None,
    };
    Subscription::open(&app.gateway, app.push_reads.clone(), subscriber, channel, after).await
}

impl ChannelObserver for AppState {
    fn channel_closes(&self, tenant: &TenantId, enforcer: &EnforcerId) {
        self.presence.forget(tenant, enforcer);
    }
}
