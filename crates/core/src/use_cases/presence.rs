//! Which enforcers are there.

use countersign_wire::{
    Label,
    failure::Failure,
    id::{EnforcerId, TenantId},
    presence::{Capabilities, PresenceRecord, Transport},
};

use crate::{
    Error, Gateway,
    channels::{Channel, Channels},
    presence::Presence,
    store::{Change, Key, Kind},
    stored::Stored as _,
};

/// What an enforcer says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelfDescription {
    /// What it works on.
    pub workspace_name: Option<Label>,
    /// What people call it.
    pub enforcer_label: Option<Label>,
    /// What it can do.
    pub capabilities: Option<Capabilities>,
}

/// Presence lists are for people; nobody reads more than this.
const MOST: u32 = 1_000;

impl Gateway {
    /// Notes that an enforcer was heard of. What it said of itself before stays, unless it says anew.
    pub async fn touch(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        transport: Transport,
        says: SelfDescription,
    ) -> Result<(), Error> {
        let key = Presence::key(enforcer);
        let loaded = self.store.load(tenant, std::slice::from_ref(&key)).await?;
        let known = Presence::read(loaded.first())?.map(|known| known.value);
        let presence = Presence {
            last_seen_at: loaded.now,
            transport,
            workspace_name: says.workspace_name.or_else(|| known.as_ref()?.workspace_name.clone()),
            enforcer_label: says.enforcer_label.or_else(|| known.as_ref()?.enforcer_label.clone()),
            capabilities: says.capabilities.or_else(|| known.as_ref()?.capabilities),
        };
        let mut change = Change::new(tenant.clone());
        // No guard: whoever was heard of last is right.
        change.puts.push(presence.put(key)?);
        self.commit(change, None).await.map(drop)
    }

    /// All enforcers of the tenant that were ever heard of.
    pub async fn presence_list(&self, tenant: &TenantId) -> Result<Vec<PresenceRecord>, Error> {
        let now = self.store.now().await?;
        let records = self.store.scan(tenant, Kind::Presence, None, MOST).await?;
        let mut known: Vec<(EnforcerId, Presence)> = Vec::with_capacity(records.len());
        for record in &records {
            if let (Some(presence), Ok(enforcer)) = (Presence::read(Some(record))?, record.key.id.parse()) {
                known.push((enforcer, presence.value));
            }
        }
        let enforcers: Vec<&EnforcerId> = known.iter().map(|(enforcer, _)| enforcer).collect();
        let channels = self.live_channels(tenant, &enforcers).await?;
        let list = known.into_iter().zip(channels);
        Ok(list.map(|((enforcer, presence), channel)| presence.record(enforcer, channel, now)).collect())
    }

    /// One enforcer.
    pub async fn presence_of(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
    ) -> Result<PresenceRecord, Error> {
        let loaded = self.store.load(tenant, &[Presence::key(enforcer)]).await?;
        let known = Presence::read(loaded.first())?;
        let known = known.ok_or(Failure::NotFound)?;
        let channel = self.live_channels(tenant, &[enforcer]).await?.into_iter().next().flatten();
        Ok(known.value.record(enforcer.clone(), channel, loaded.now))
    }

    /// The transport of each enforcer's newest live channel, where it has one.
    async fn live_channels(
        &self,
        tenant: &TenantId,
        enforcers: &[&EnforcerId],
    ) -> Result<Vec<Option<Transport>>, Error> {
        let keys: Vec<Key> = enforcers.iter().map(Channels::key).collect();
        let mut open = Vec::with_capacity(keys.len());
        for record in self.store.load(tenant, &keys).await?.records {
            open.push(Channels::read(record.as_ref())?.map(|known| known.value.open).unwrap_or_default());
        }
        let nodes = open.iter().flatten().map(|channel| channel.node.clone()).collect();
        let live = self.live_nodes(nodes).await?;
        let newest = |open: &Vec<Channel>| {
            open.iter().rev().find(|channel| live.contains(&channel.node)).map(|channel| channel.transport)
        };
        Ok(open.iter().map(newest).collect())
    }
}
