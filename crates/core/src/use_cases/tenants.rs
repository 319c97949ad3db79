//! Tenants as a whole: listed, suspended, resumed, erased.

use std::collections::BTreeSet;

use countersign_wire::{failure::Failure, id::TenantId, timestamp::Timestamp};

use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Commit, Evaluation, Gateway, Page},
    load::record_at,
    model::{
        channels::{Lease, NodeId},
        tenant::{ERASED_AFTER, Suspension},
    },
    store::{Change, Due, Guard, Kind, Record, Shard, StoreError, Stored as _},
};

/// Rows that are deleted from each table at once.
const ERASE_CHUNK: u32 = 1_000;

const LEASES_AT_ONCE: u32 = 500;

/// A tenant of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantSummary {
    /// `None` if it may be used.
    pub suspension: Option<Suspension>,
    /// What its payloads take, in bytes.
    pub stored_bytes: u64,
}

/// A tenant of the list; `None` for one that is just being moved to another shard, and can't be read meanwhile.
pub type ListedTenant = (TenantId, Option<TenantSummary>);

impl Gateway {
    /// Tenants that have anything in the store, by shard and then by id, after the tenant `after`.
    pub async fn tenants(
        &self,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Page<TenantId, Option<TenantSummary>>, Error> {
        let mut found: Vec<TenantId> = Vec::new();
        let first = after.map_or(Shard(0), |after| self.store.shard_of(after));
        let mut after = after.cloned();
        for shard in self.shards().skip(usize::from(first.0)) {
            while (found.len() as u64) < u64::from(limit) {
                let more = self.store.tenants(shard, after.as_ref(), limit).await?;
                let Some(last) = more.last() else { break };
                after = Some(last.clone());
                found.extend(more.into_iter().filter(|tenant| Shard::of_nodes_tenant(tenant).is_none()));
            }
            if (found.len() as u64) >= u64::from(limit) {
                break;
            }
            after = None;
        }
        let is_full = (found.len() as u64) >= u64::from(limit);
        found.truncate(limit as usize);
        let next = found.last().filter(|_| is_full).map(ToString::to_string);
        let mut items = Vec::with_capacity(found.len());
        for tenant in found {
            let summary = match self.summary(&tenant).await {
                Ok(summary) => Some(summary),
                Err(Error::Store(StoreError::Moved)) => None,
                Err(error) => return Err(error),
            };
            items.push((tenant, summary));
        }
        Ok(Page { items, next })
    }

    /// Nodes that are alive on the shard of a tenant, and not on this one: they do not know of it, or do not reach it. A tenant that
    /// is moved to it would be lost to their clients. No other shard is asked, because one that is away has no part in it.
    pub async fn nodes_without(&self, shard: Shard, tenant: &TenantId) -> Result<Vec<NodeId>, Error> {
        let (here, there) = (self.nodes_of(shard).await?, self.nodes_of(self.store.shard_of(tenant)).await?);
        Ok(there.difference(&here).cloned().collect())
    }

    /// Those whose lease on this shard has not run out.
    async fn nodes_of(&self, shard: Shard) -> Result<BTreeSet<NodeId>, Error> {
        let (nodes, mut after) = (shard.nodes_tenant()?, None::<String>);
        let mut live = BTreeSet::new();
        loop {
            let page = self.store.scan(&nodes, Kind::Lease, after.as_deref(), LEASES_AT_ONCE).await?;
            let Some(last) = page.last() else { return Ok(live) };
            after = Some(last.key.id.clone());
            let now = self.store.load(&nodes, &[]).await?.now;
            for record in &page {
                if Lease::read(Some(record))?.is_some_and(|lease| now < lease.value.until) {
                    live.insert(NodeId(record.key.id.clone()));
                }
            }
        }
    }

    async fn summary(&self, tenant: &TenantId) -> Result<TenantSummary, Error> {
        let suspension = self.suspension(tenant).await?;
        Ok(TenantSummary { suspension, stored_bytes: self.store.stored_bytes(tenant).await? })
    }

    /// Whether the tenant is suspended.
    async fn suspension(&self, tenant: &TenantId) -> Result<Option<Suspension>, Error> {
        let (known, _) = self.load(tenant, &record_at::<Suspension>(Suspension::record())).await?;
        Ok(known.map(|known| known.value))
    }

    /// No key of the tenant is valid from now on, and no invitation; what is held closes. Everything stays stored, and what
    /// is due still happens. One that is suspended stays as it is.
    pub async fn suspend_tenant(&self, tenant: &TenantId) -> Result<Suspension, Error> {
        self.change_suspension(tenant, "tenant.suspended", |known, now| {
            known.unwrap_or(Suspension { since: now, erased_at: None })
        })
        .await
    }

    /// Suspends the tenant, and deletes everything of it a little later. Not to be undone.
    pub async fn erase_tenant(&self, tenant: &TenantId) -> Result<Suspension, Error> {
        self.change_suspension(tenant, "tenant.erased", |known, now| {
            let since = known.map_or(now, |known| known.since);
            let erased_at = known.and_then(|known| known.erased_at);
            Suspension { since, erased_at: Some(erased_at.unwrap_or_else(|| now.plus(ERASED_AFTER))) }
        })
        .await
    }

    async fn change_suspension(
        &self,
        tenant: &TenantId,
        did: &'static str,
        next: impl Fn(Option<Suspension>, Timestamp) -> Suspension + Sync + Send,
    ) -> Result<Suspension, Error> {
        self.must_exist(tenant).await?;
        let record = record_at::<Suspension>(Suspension::record());
        self.update(tenant, &record, |known, now| {
            let suspension = next(known.as_ref().map(|known| known.value), now);
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(record.key(), known.as_ref()));
            change.puts.push(suspension.put(record.key())?);
            change.due.extend(suspension.erased_at.map(|at| (at, record.key())));
            change.audit.push(audit::action(record.key(), Actor::Operator, did)?);
            Ok(Evaluation::commit(change, suspension))
        })
        .await
    }

    /// Ends a suspension. One that is being erased can't be resumed.
    pub async fn resume_tenant(&self, tenant: &TenantId) -> Result<(), Error> {
        self.must_exist(tenant).await?;
        let record = record_at::<Suspension>(Suspension::record());
        self.update(tenant, &record, |known, _| {
            let Some(known) = known else { return Ok(Evaluation::NothingToDo(())) };
            if known.value.erased_at.is_some() {
                return Err(Failure::State.into());
            }
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(record.key(), Some(&known)));
            change.deletes.push(record.key());
            change.audit.push(audit::action(record.key(), Actor::Operator, "tenant.resumed")?);
            Ok(Evaluation::commit(change, ()))
        })
        .await
    }

    /// A typo must not make a tenant, and what nodes share is none.
    async fn must_exist(&self, tenant: &TenantId) -> Result<(), Error> {
        let is_of_nodes = Shard::of_nodes_tenant(tenant).is_some();
        for kind in Kind::ALL.iter().filter(|_| !is_of_nodes) {
            if !self.store.scan(tenant, *kind, None, 1).await?.is_empty() {
                return Ok(());
            }
        }
        Err(Failure::NotFound.into())
    }

    /// Deletes everything of a tenant whose time has come, as much as fits into a claim; the rest is due again when that
    /// lapses. The record of the suspension goes last.
    pub(crate) async fn erase_due(
        &self,
        due: &Due,
        record: Option<&Record>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let known = Suspension::read(record)?;
        let erased_at = known.as_ref().and_then(|known| known.value.erased_at);
        let mut change = Change::new(due.tenant.clone());
        change.guards.push(Guard::unchanged(due.key.clone(), known.as_ref()));
        change.no_longer_due.push(due.key.clone());
        match erased_at {
            Some(at) if now < at => change.due.push((at, due.key.clone())),
            Some(_) => {
                while self.store.erase(&due.tenant, ERASE_CHUNK).await? > 0 {}
                change.deletes.push(due.key.clone());
            }
            None => {}
        }
        match self.commit(change, None).await? {
            Commit::Done => Ok(()),
            Commit::Conflict => Err(Failure::State.into()),
        }
    }
}
