//! Enforcers' channels open, and ask which messages are theirs to send.

use std::{collections::BTreeSet, slice};

use countersign_wire::{
    id::{EnforcerId, TenantId},
    presence::Transport,
    timestamp::Timestamp,
};
use tokio::task::JoinSet;

use crate::{
    cache::MAX_KNOWN_AGE,
    closings::Closing,
    error::Error,
    gateway::{Evaluation, Gateway},
    load::{Load, ReadFrom, Reading, record_of},
    model::channels::{Channel, ChannelId, Channels, LEASE, Lease, NodeId},
    store::{Change, Guard, Key, Shard, StoreError, Stored as _, Versioned},
};

/// Which messages a channel has to send: those for which it is the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelRouting {
    pub decisions: bool,
    /// Withdrawals, refresh requests, prompts: everything but decisions.
    pub other: bool,
}

impl Gateway {
    /// Renews the lease of a node on every shard at once. If one of them does not answer, the others are renewed all the
    /// same, and its error is returned.
    pub async fn renew_lease(&self, node: &NodeId) -> Result<(), Error> {
        let mut renewals = JoinSet::new();
        for shard in self.shards() {
            let (gateway, node) = (self.clone(), node.clone());
            renewals.spawn(async move { gateway.renew_lease_on(shard, &node).await });
        }
        renewals.join_all().await.into_iter().collect()
    }

    /// Renews the lease of a node on one shard: for the tenants there it counts as alive for [`LEASE`] more, by the clock
    /// of that shard.
    pub async fn renew_lease_on(&self, shard: Shard, node: &NodeId) -> Result<(), Error> {
        let (tenant, key) = (shard.nodes_tenant()?, Lease::key(&node.0));
        let closed_before = self.closings.next_order();
        let until = self.store.load(&tenant, slice::from_ref(&key)).await?.now.plus(LEASE);
        let mut change = Change::new(tenant);
        change.puts.push(Lease { until }.put(key.clone())?);
        change.due.push((until.plus(LEASE), key));
        self.commit(change, None).await?;
        if node == self.node() {
            self.cache.lease_renewed(shard);
        }
        self.confirm_closings(shard, closed_before);
        Ok(())
    }

    /// Opens a channel, which is the newest from then on. If it is not known whether it was opened, it is closed again, and with
    /// too many of those none is opened.
    pub async fn open_channel(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        node: &NodeId,
        transport: Transport,
    ) -> Result<ChannelId, Error> {
        if self.closings.is_full(&(tenant.clone(), enforcer.clone())) {
            return Err(Error::Store(StoreError::Overloaded));
        }
        let attempt = self.random.secret()[..16].to_owned();
        let opened = self
            .update(tenant, &ChannelsAndLeases { enforcer, node }, |loaded, _| {
                let mut next = loaded.channels();
                let channel = next.open(node, transport, &attempt, |node| loaded.live.contains(node));
                Ok(Evaluation::commit(put_channels(tenant, enforcer, loaded.known.as_ref(), &next)?, channel))
            })
            .await;
        // Its node lives, so it would count as the newest although nobody serves it.
        if let Err(Error::Store(StoreError::OutcomeUnknown)) = &opened {
            self.close_until_done(tenant, enforcer, Closing::unknown(attempt));
        }
        opened
    }

    /// Which messages a channel of `node` has to send. `None` if the channel was dropped: its node counted as dead, or
    /// the enforcer opened too many.
    pub async fn channel_routing(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        node: &NodeId,
        channel: &ChannelId,
    ) -> Result<Option<ChannelRouting>, Error> {
        let (loaded, _) = self.load(tenant, &ChannelsAndLeases { enforcer, node }).await?;
        Ok(routing(&loaded.channels(), channel, |node| loaded.live.contains(node)))
    }

    /// As [`Gateway::channel_routing`] from memory. `None` if this node does not know it well enough: the channels were
    /// read too long ago, a lease seems to have run out, or this node's own is not renewed.
    pub fn known_routing(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        channel: &ChannelId,
    ) -> Option<ChannelRouting> {
        let shard = self.store.shard_of(tenant);
        if !self.cache.is_lease_recent(shard) {
            return None;
        }
        let known = |tenant: &TenantId, key: &Key| self.cache.known.get(tenant, key, Some(MAX_KNOWN_AGE));
        let channels = known(tenant, &Channels::key(enforcer))?;
        let channels = Channels::read(channels.record.as_ref()).ok()??.value;
        let others = channels.open.iter().map(|channel| &channel.node).filter(|node| *node != self.node());
        let nodes = shard.nodes_tenant().ok()?;
        for other in others {
            let lease = known(&nodes, &Lease::key(&other.0))?;
            let lease = Lease::read(lease.record.as_ref()).ok()??.value;
            if self.store.estimated_now(tenant)? >= lease.until {
                return None;
            }
        }
        routing(&channels, channel, |_| true)
    }

    /// Those of the nodes whose lease has not run out on the shard of this tenant.
    pub(super) async fn live_nodes(
        &self,
        tenant: &TenantId,
        nodes: BTreeSet<NodeId>,
    ) -> Result<BTreeSet<NodeId>, Error> {
        Ok(live_nodes(&self.reading(ReadFrom::Store), tenant, nodes).await?)
    }
}

/// `None` if there is no such channel.
fn routing(
    channels: &Channels,
    channel: &ChannelId,
    is_live: impl Fn(&NodeId) -> bool,
) -> Option<ChannelRouting> {
    let newest = |is_decision| channels.newest(is_decision, &is_live) == Some(channel.number);
    channels.has(&channel.attempt).then(|| ChannelRouting { decisions: newest(true), other: newest(false) })
}

/// Writes the channels of an enforcer if they are as they were read.
pub(super) fn put_channels(
    tenant: &TenantId,
    enforcer: &EnforcerId,
    known: Option<&Versioned<Channels>>,
    next: &Channels,
) -> Result<Change, StoreError> {
    let mut change = Change::new(tenant.clone());
    change.guards.push(Guard::unchanged(Channels::key(enforcer), known));
    change.puts.push(next.put(Channels::key(enforcer))?);
    Ok(change)
}

/// An enforcer's channels, and which of their nodes are alive.
struct ChannelsAndLeases<'a> {
    enforcer: &'a EnforcerId,
    /// The node that asks. It knows itself to be alive, and reads no lease where there is no other node.
    node: &'a NodeId,
}

struct LoadedChannels {
    known: Option<Versioned<Channels>>,
    live: BTreeSet<NodeId>,
}

impl LoadedChannels {
    fn channels(&self) -> Channels {
        self.known.as_ref().map(|known| known.value.clone()).unwrap_or_default()
    }
}

impl Load for ChannelsAndLeases<'_> {
    type Loaded = LoadedChannels;

    async fn load(
        &self,
        reading: &Reading<'_>,
        tenant: &TenantId,
    ) -> Result<(LoadedChannels, Timestamp), StoreError> {
        let (known, now) = record_of::<Channels>(self.enforcer).load(reading, tenant).await?;
        let open: &[Channel] = known.as_ref().map(|known| known.value.open.as_slice()).unwrap_or_default();
        let others =
            open.iter().map(|channel| &channel.node).filter(|other| *other != self.node).cloned().collect();
        let mut live = live_nodes(reading, tenant, others).await?;
        live.insert(self.node.clone());
        Ok((LoadedChannels { known, live }, now))
    }
}

async fn live_nodes(
    reading: &Reading<'_>,
    tenant: &TenantId,
    nodes: BTreeSet<NodeId>,
) -> Result<BTreeSet<NodeId>, StoreError> {
    if nodes.is_empty() {
        return Ok(nodes);
    }
    let keys: Vec<Key> = nodes.iter().map(|node| Lease::key(&node.0)).collect();
    let nodes_tenant = reading.store.shard_of(tenant).nodes_tenant()?;
    let (leases, now) = reading.beside(&nodes_tenant, &keys).await?;
    let mut live = BTreeSet::new();
    for (node, record) in nodes.into_iter().zip(&leases) {
        if Lease::read(record.as_ref())?.is_some_and(|lease| now < lease.value.until) {
            live.insert(node);
        }
    }
    Ok(live)
}
