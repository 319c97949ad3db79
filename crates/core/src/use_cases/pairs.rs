//! The pairs of a tenant: listed and removed by either party.

use countersign_wire::{
    failure::Failure,
    id::{ApproverId, EnforcerId, TenantId},
    timestamp::Timestamp,
};

use crate::{
    audit::{self, Actor},
    couple::Couple,
    error::Error,
    gateway::{Evaluation, Gateway},
    load::record_of,
    model::{
        pairing::PairedEnforcer,
        pairs::{Pair, PairId, Pairs, pairs_record},
        viewer::Viewer,
    },
    store::{Change, Key, Kind, Stored as _},
};

/// Whose pairs are listed. An absent id stands for all of the tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PairFilter {
    pub enforcer: Option<EnforcerId>,
    pub approver: Option<ApproverId>,
}

/// A page of pairs, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairPage {
    pub pairs: Vec<(PairId, Pair)>,
    /// The next page starts after this pair; `None` after the last page.
    pub next: Option<PairId>,
}

impl Gateway {
    /// A page of the pairs that the filter selects, after the pair `after`. A pair that is there during the whole
    /// iteration is listed exactly once.
    pub async fn pairs(
        &self,
        tenant: &TenantId,
        filter: &PairFilter,
        after: Option<&PairId>,
        limit: u32,
    ) -> Result<PairPage, Error> {
        let limit = limit as usize;
        // Every couple has a pair. One more shows whether there is another page, and the first may be listed already.
        let couples = self.couples(tenant, filter, after, limit + 2).await?;
        let keys: Vec<Key> =
            couples.iter().map(|(enforcer, approver)| pairs_record(enforcer, approver)).collect();
        let records = match keys.is_empty() {
            true => Vec::new(),
            false => self.store.load(tenant, &keys).await?.records,
        };
        let mut pairs = Vec::new();
        for ((enforcer, approver), record) in couples.into_iter().zip(records) {
            let listed = if let Some(known) = Pairs::read(record.as_ref())? {
                known.value
            } else {
                // From before pairs were recorded, or removed since the couples were read.
                let couple = Couple { enforcer: &enforcer, approver: &approver };
                couple.pairs(&self.load(tenant, &couple.records()).await?.0)
            };
            for pair in listed.pairs {
                let (enforcer, approver) = (enforcer.clone(), approver.clone());
                pairs.push((PairId { enforcer, approver, device: pair.device }, pair));
            }
        }
        pairs.retain(|(id, _)| after.is_none_or(|after| id > after));
        pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        let has_more = pairs.len() > limit;
        pairs.truncate(limit);
        let next = pairs.last().filter(|_| has_more).map(|(id, _)| id.clone());
        Ok(PairPage { pairs, next })
    }

    /// Removes a pair: its routing tokens, its signing key unless another pair brought the same, and, with the last
    /// device, the approver and the enforcer from each other's list. Another's pair is not found.
    pub async fn remove_pair(
        &self,
        tenant: &TenantId,
        by: Viewer<'_>,
        id: &PairId,
    ) -> Result<Timestamp, Error> {
        if !id.is_seen_by(by) {
            return Err(Failure::NotFound.into());
        }
        let couple = Couple { enforcer: &id.enforcer, approver: &id.approver };
        self.update(tenant, &couple.records(), |values, now| {
            let mut change = Change::new(tenant.clone());
            let mut opened = couple.open(&mut change, &values, now);
            let Some(removed) = opened.remove(&mut change, id.device) else {
                return Ok(Evaluation::reject_if_unchanged(change, Failure::NotFound));
            };
            opened.close(&mut change)?;
            let record = pairs_record(&id.enforcer, &id.approver);
            change.audit.push(audit::pair_removed(record, actor(by, id), id, removed.signing_key)?);
            Ok(Evaluation::commit(change, now))
        })
        .await
    }

    /// The couples that the filter selects, in order: at most `limit`, from that of `after` on.
    async fn couples(
        &self,
        tenant: &TenantId,
        filter: &PairFilter,
        after: Option<&PairId>,
        limit: usize,
    ) -> Result<Vec<(EnforcerId, ApproverId)>, Error> {
        let mut couples: Vec<(EnforcerId, ApproverId)> = match (&filter.enforcer, &filter.approver) {
            (Some(enforcer), approver) => {
                let (known, _) = self.load(tenant, &record_of::<PairedEnforcer>(enforcer)).await?;
                let approvers = known.map(|known| known.value.approvers).unwrap_or_default();
                let selected = approvers
                    .into_iter()
                    .filter(|known| approver.as_ref().is_none_or(|approver| approver == known));
                selected.map(|approver| (enforcer.clone(), approver)).collect()
            }
            (None, Some(approver)) => {
                let enforcers = self.paired_enforcers(tenant, approver).await?;
                enforcers.into_iter().map(|enforcer| (enforcer, approver.clone())).collect()
            }
            (None, None) => self.all_couples(tenant, after, limit).await?,
        };
        couples.retain(|(enforcer, approver)| {
            after.is_none_or(|after| (enforcer, approver) >= (&after.enforcer, &after.approver))
        });
        couples.sort();
        couples.truncate(limit);
        Ok(couples)
    }

    /// Enough couples of the tenant for a page: those of the enforcer of `after`, and of later ones.
    async fn all_couples(
        &self,
        tenant: &TenantId,
        after: Option<&PairId>,
        limit: usize,
    ) -> Result<Vec<(EnforcerId, ApproverId)>, Error> {
        let mut couples = Vec::new();
        if let Some(PairId { enforcer, approver, .. }) = after {
            let (known, _) = self.load(tenant, &record_of::<PairedEnforcer>(enforcer)).await?;
            let approvers = known.map(|known| known.value.approvers).unwrap_or_default();
            let left = approvers.into_iter().filter(|known| known >= approver);
            couples.extend(left.map(|approver| (enforcer.clone(), approver)));
        }
        let mut position = after.map(|after| after.enforcer.to_string());
        while couples.len() < limit {
            let records = self.store.scan(tenant, Kind::Enforcer, position.as_deref(), CHUNK).await?;
            for record in &records {
                let enforcer = record.key.id.parse().map_err(|_| Failure::Internal)?;
                let approvers = PairedEnforcer::read(Some(record))?.map(|known| known.value.approvers);
                let couple = |approver| (EnforcerId::clone(&enforcer), approver);
                couples.extend(approvers.unwrap_or_default().into_iter().map(couple));
            }
            match records.last() {
                Some(last) if records.len() == CHUNK as usize => position = Some(last.key.id.clone()),
                _ => break,
            }
        }
        Ok(couples)
    }
}

/// Enforcers that one read brings.
const CHUNK: u32 = 200;

/// Whoever may act as either party acts as the pair's.
fn actor<'a>(by: Viewer<'_>, id: &'a PairId) -> Actor<'a> {
    match by {
        Viewer::Enforcer(_) | Viewer::AnyEnforcer => Actor::Enforcer(id.enforcer.as_str()),
        Viewer::Approver(_) | Viewer::AnyApprover => Actor::Approver(id.approver.as_str()),
        Viewer::Operator => Actor::Operator,
    }
}
