//! Announces what was committed: hands deliveries over to whoever will send them, and rings, here and on other nodes.

use std::sync::Arc;

use countersign_wire::{
    id::{EnforcerId, TenantId},
    msg_type::MsgType,
};

use tokio::time::Instant;

use crate::{
    cache::MAX_KNOWN_AGE,
    committed::Committed,
    gateway::Gateway,
    model::channels::{Channels, NodeId},
    notify::{Announcement, Ring},
    store::{Mailbox, NewDelivery, Stored as _},
};

/// A larger message is not sent to other nodes: they read it.
const MAX_REMOTE_BYTES: usize = 16 << 10;

impl Gateway {
    /// Hands over and rings. `ring` is for those who wait for something that is not written.
    pub(crate) fn announce(&self, committed: &Committed, ring: Option<Ring>) {
        let (listeners, has_others) = (&self.cache.listeners, self.announcer.has_others());
        let mut rings = committed.rings();
        rings.extend(ring.filter(|ring| rings.iter().all(|(of, _)| of != ring)).map(|ring| (ring, 0)));
        let mut hand_overs = Vec::new();
        for (new, number) in committed.deliveries() {
            let is_here = listeners.has(&Ring::Mailbox(committed.mailbox(&new.mailbox)));
            let elsewhere = if has_others { self.probable_node(committed.tenant(), new) } else { None };
            if !is_here && elsewhere.is_none() {
                continue;
            }
            let Some(hand_over) = committed.hand_over(new, number).map(Arc::new) else { continue };
            if is_here {
                self.cache.hand_overs.insert(Arc::clone(&hand_over));
            }
            let elsewhere = elsewhere.filter(|_| hand_over.message.size() <= MAX_REMOTE_BYTES);
            if let Some(node) = elsewhere {
                self.metrics.hand_overs.sent.inc();
                hand_overs.push((node, hand_over));
            }
        }
        listeners.wake(&rings);
        if has_others {
            self.announcer.announce(Announcement { timeline: self.cache.timeline(), rings, hand_overs });
        }
    }

    /// The other node that will probably send this: the one with the enforcer's newest channel, as far as this node knows.
    /// A wrong guess costs that node a look, and the right one a read.
    fn probable_node(&self, tenant: &TenantId, new: &NewDelivery) -> Option<NodeId> {
        let Mailbox::Enforcer(enforcer) = &new.mailbox else { return None };
        let known = self.cache.known.get(tenant, &Channels::key(enforcer), None);
        let is_old = known.as_ref().is_none_or(|known| known.at.elapsed() > MAX_KNOWN_AGE);
        if is_old && self.cache.may_learn() {
            self.learn_channels(tenant.clone(), enforcer.clone());
        }
        let channels = Channels::read(known?.record.as_ref()).ok()??.value;
        let number = channels.newest(new.msg_type == MsgType::DecisionDeliver, |_| true)?;
        let newest = channels.open.into_iter().find(|channel| channel.number == number)?;
        Some(newest.node).filter(|node| node != self.node())
    }

    /// Reads an enforcer's channels for the next time, beside the request.
    fn learn_channels(&self, tenant: TenantId, enforcer: EnforcerId) {
        let gateway = self.clone();
        tokio::spawn(async move {
            let (key, asked) = (Channels::key(&enforcer), Instant::now());
            if let Ok(loaded) = gateway.store.load(&tenant, std::slice::from_ref(&key)).await {
                let record = loaded.records.into_iter().next().flatten();
                gateway.cache.known.insert(&tenant, &key, record, asked);
            }
        });
    }
}
