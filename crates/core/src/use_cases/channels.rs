//! Channels of enforcers come and go, and are asked which of them is to be told.

use std::collections::BTreeSet;

use countersign_wire::{
    id::{EnforcerId, TenantId},
    presence::Transport,
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::{
    Error, Gateway,
    channels::{ChannelNumber, Channels, LEASE, NodeId},
    gateway::{Attempt, mailbox_ring},
    store::{Change, Key, Mailbox, StoreError},
    stored::{Stored as _, Versioned, unchanged},
};

/// Until when a node is taken for alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Until when.
    pub until: Timestamp,
}

/// Leases belong to no tenant. No credential can have this name: it has a character that keys refuse.
fn nodes() -> Result<TenantId, Error> {
    TenantId::new("_nodes").map_err(|_| Error::Store(StoreError::Corrupt("a tenant's name".to_owned())))
}

/// An enforcer's channels, with the nodes among theirs that are alive.
struct Seen {
    known: Option<Versioned<Channels>>,
    live: BTreeSet<NodeId>,
}

/// What a channel is to tell: that for which it is the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Decisions.
    pub decisions: bool,
    /// Everything else.
    pub rest: bool,
}

impl Gateway {
    /// Says that a node is alive for some time more.
    pub async fn renew_lease(&self, node: &NodeId) -> Result<(), Error> {
        let until = self.store.now().await?.plus(LEASE);
        let mut change = Change::new(nodes()?);
        let key = Lease::key(&node.0);
        change.puts.push(Lease { until }.put(key.clone())?);
        change.due.push((until.plus(LEASE), key));
        self.commit(change, None).await.map(drop)
    }

    /// Opens a channel, which is the newest from then on.
    pub async fn open_channel(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        node: &NodeId,
        transport: Transport,
    ) -> Result<ChannelNumber, Error> {
        loop {
            let seen = self.channels(tenant, enforcer, node).await?;
            let mut next = seen.known.as_ref().map(|known| known.value.clone()).unwrap_or_default();
            let number = next.open(node, transport, |node| seen.live.contains(node));
            if let Attempt::Done = self.put_channels(tenant, enforcer, seen.known.as_ref(), &next).await? {
                return Ok(number);
            }
        }
    }

    /// Closes a channel, and rings for the next one.
    pub async fn close_channel(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        number: ChannelNumber,
    ) -> Result<(), Error> {
        loop {
            let loaded = self.store.load(tenant, &[Channels::key(enforcer)]).await?;
            let known = Channels::read(loaded.first())?;
            let mut next = known.as_ref().map(|known| known.value.clone()).unwrap_or_default();
            if !next.close(number) {
                return Ok(());
            }
            if let Attempt::Done = self.put_channels(tenant, enforcer, known.as_ref(), &next).await? {
                self.doorbell.ring(&[mailbox_ring(tenant, &Mailbox::Enforcer(enforcer.clone()))]);
                return Ok(());
            }
        }
    }

    /// What a channel of `node` is to tell. None if it is forgotten: its node was taken for dead, or there are too many.
    pub async fn turn_of(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        node: &NodeId,
        number: ChannelNumber,
    ) -> Result<Option<Turn>, Error> {
        let Seen { known, live } = self.channels(tenant, enforcer, node).await?;
        let channels = known.map(|known| known.value).unwrap_or_default();
        if channels.open.iter().all(|channel| channel.number != number) {
            return Ok(None);
        }
        let newest = |is_decision| channels.newest(is_decision, |node| live.contains(node)) == Some(number);
        Ok(Some(Turn { decisions: newest(true), rest: newest(false) }))
    }

    async fn put_channels(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        known: Option<&Versioned<Channels>>,
        next: &Channels,
    ) -> Result<Attempt, Error> {
        let key = Channels::key(enforcer);
        let mut change = Change::new(tenant.clone());
        change.guards.push(unchanged(key.clone(), known));
        change.puts.push(next.put(key)?);
        self.commit(change, None).await
    }

    /// As `node` sees it, which knows itself to be alive and so reads no lease where there is no other node.
    async fn channels(&self, tenant: &TenantId, enforcer: &EnforcerId, node: &NodeId) -> Result<Seen, Error> {
        let loaded = self.store.load(tenant, &[Channels::key(enforcer)]).await?;
        let known = Channels::read(loaded.first())?;
        let open = known.as_ref().map(|known| known.value.open.as_slice()).unwrap_or_default();
        let others =
            open.iter().map(|channel| &channel.node).filter(|other| *other != node).cloned().collect();
        let mut live = self.live_nodes(others).await?;
        live.insert(node.clone());
        Ok(Seen { known, live })
    }

    /// Those of the nodes whose lease has not run out.
    pub(crate) async fn live_nodes(&self, asked: BTreeSet<NodeId>) -> Result<BTreeSet<NodeId>, Error> {
        if asked.is_empty() {
            return Ok(asked);
        }
        let keys: Vec<Key> = asked.iter().map(|node| Lease::key(&node.0)).collect();
        let loaded = self.store.load(&nodes()?, &keys).await?;
        let mut live = BTreeSet::new();
        for (node, record) in asked.into_iter().zip(&loaded.records) {
            if Lease::read(record.as_ref())?.is_some_and(|lease| loaded.now < lease.value.until) {
                live.insert(node);
            }
        }
        Ok(live)
    }
}
