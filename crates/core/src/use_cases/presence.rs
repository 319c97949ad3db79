//! Which enforcers are online.

use std::time::Duration;

use countersign_wire::{
    Label,
    failure::Failure,
    id::{EnforcerId, TenantId},
    presence::{Capabilities, PresenceRecord, Transport},
};

use crate::{
    error::Error,
    gateway::Gateway,
    load::record_of,
    model::{
        channels::{Channel, Channels},
        presence::Presence,
    },
    store::{Change, Due, Key, Kind, Stored as _},
};

/// What an enforcer says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelfDescription {
    pub workspace_name: Option<Label>,
    pub enforcer_label: Option<Label>,
    pub capabilities: Option<Capabilities>,
}

/// Enforcers that one read of the list brings.
const CHUNK: u32 = 32;

/// A record that is deleted within this time counts as deleted: far longer than any commit takes.
const DELETION_MARGIN: Duration = Duration::from_hours(24);

/// A part of the presence list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresencePage {
    pub records: Vec<PresenceRecord>,
    /// Where the next page starts; `None` after the last.
    pub next: Option<String>,
}

impl Gateway {
    /// Records that an enforcer was seen. What it said of itself before stays, unless it says it again.
    pub async fn record_presence(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        transport: Transport,
        says: SelfDescription,
    ) -> Result<(), Error> {
        let key = Presence::key(enforcer);
        let (known, now) = self.load(tenant, &record_of::<Presence>(enforcer)).await?;
        let known = known.map(|known| known.value);
        let keep_for = self.retention.presence;
        let mut change = Change::new(tenant.clone());
        // One due entry for each record: when its time comes, it is put off until the enforcer has been offline for long
        // enough. A record that may be deleted while this is written needs a new one.
        if known.as_ref().is_none_or(|known| now.plus(DELETION_MARGIN) >= known.last_seen_at.plus(keep_for)) {
            change.due.push((now.plus(keep_for), key.clone()));
        }
        let presence = Presence {
            last_seen_at: now,
            transport,
            workspace_name: says.workspace_name.or_else(|| known.as_ref()?.workspace_name.clone()),
            enforcer_label: says.enforcer_label.or_else(|| known.as_ref()?.enforcer_label.clone()),
            capabilities: says.capabilities.or_else(|| known.as_ref()?.capabilities.clone()),
            closed_at: known.as_ref().and_then(|known| known.closed_at),
        };
        // No guard: the last writer wins.
        change.puts.push(presence.put(key)?);
        self.commit(change, None).await.map(drop)
    }

    /// A page of all enforcers of the tenant that were ever seen, after the id `after`.
    pub async fn presence_page(&self, tenant: &TenantId, after: Option<&str>) -> Result<PresencePage, Error> {
        let now = self.store.now().await?;
        let records = self.store.scan(tenant, Kind::Presence, after, CHUNK).await?;
        let next = records.last().filter(|_| records.len() == CHUNK as usize).map(|last| last.key.id.clone());
        let mut known: Vec<(EnforcerId, Presence)> = Vec::with_capacity(records.len());
        for record in &records {
            if let (Some(presence), Ok(enforcer)) = (Presence::read(Some(record))?, record.key.id.parse()) {
                known.push((enforcer, presence.value));
            }
        }
        let enforcers: Vec<&EnforcerId> = known.iter().map(|(enforcer, _)| enforcer).collect();
        let channels = self.live_channels(tenant, &enforcers).await?;
        let list = known.into_iter().zip(channels);
        let records = list.map(|((enforcer, presence), channel)| presence.record(enforcer, channel, now));
        Ok(PresencePage { records: records.collect(), next })
    }

    /// The presence of one enforcer.
    pub async fn presence_of(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
    ) -> Result<PresenceRecord, Error> {
        let (known, now) = self.load(tenant, &record_of::<Presence>(enforcer)).await?;
        let known = known.ok_or(Failure::NotFound)?;
        let channel = self.live_channels(tenant, &[enforcer]).await?.into_iter().next().flatten();
        Ok(known.value.record(enforcer.clone(), channel, now))
    }

    /// Whether the enforcer whose presence is due has a live channel.
    pub(crate) async fn has_live_channel(&self, presence: &Due) -> Result<bool, Error> {
        let enforcer: EnforcerId = presence.key.id.parse().map_err(|_| Failure::Internal)?;
        Ok(self.live_channels(&presence.tenant, &[&enforcer]).await?.iter().any(Option::is_some))
    }

    /// The transport of each enforcer's newest live channel; `None` where it has none.
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
        let live = self.live_nodes(tenant, nodes).await?;
        let newest = |open: &Vec<Channel>| {
            open.iter().rev().find(|channel| live.contains(&channel.node)).map(|channel| channel.transport)
        };
        Ok(open.iter().map(newest).collect())
    }
}
