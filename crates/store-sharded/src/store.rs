//! The port: what is about one tenant goes to its shard, the rest to all of them at once.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;
use countersign_core::store::{
    Change, Delivery, DeliveryPage, DeliveryQuery, Due, InInboxes, Key, Kind, Loaded, Mailbox, MailboxKey,
    NotedPage, Outcome, PayloadId, Record, Shard, Store, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use futures_util::future::join_all;

use crate::sharded::ShardedStore;

type Claimed = (Vec<Due>, Timestamp);

impl ShardedStore {
    /// Makes these calls at once, and returns what was answered in time, by shard. An error if nothing was.
    async fn on_shards<T, F>(
        &self,
        calls: impl IntoIterator<Item = (usize, F)>,
    ) -> Result<Vec<(usize, T)>, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let calls = calls.into_iter().filter_map(|(at, call)| {
            let shard = self.shards.get(at)?;
            Some(async move { (at, shard.in_time(call).await) })
        });
        let (mut answers, mut failed) = (Vec::new(), None);
        for (at, answer) in join_all(calls).await {
            match answer {
                Ok(answer) => answers.push((at, answer)),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if answers.is_empty() => Err(error),
            _ => Ok(answers),
        }
    }

    /// Claims from each shard as many as `limits` says.
    async fn claim(&self, limits: &[(usize, u32)]) -> Result<Vec<(usize, Claimed)>, StoreError> {
        self.on_shards(
            limits
                .iter()
                .map(|(at, limit)| (*at, async move { self.shards[*at].store()?.claim_due(*limit).await })),
        )
        .await
    }
}

#[async_trait]
impl Store for ShardedStore {
    async fn load(&self, tenant: &TenantId, keys: &[Key]) -> Result<Loaded, StoreError> {
        let (at, store) = self.of(tenant)?;
        self.confirmed(tenant, at, store.load(tenant, keys).await?).await
    }

    async fn commit(&self, change: Change) -> Result<Outcome, StoreError> {
        let (at, store) = self.of(&change.tenant)?;
        let outcome = store.commit_in(at.epoch, change).await;
        if outcome == Err(StoreError::Moved) {
            self.is_outdated.notify_waiters();
        }
        outcome
    }

    async fn payloads(&self, tenant: &TenantId, ids: &[PayloadId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let (at, store) = self.of(tenant)?;
        self.confirmed(tenant, at, store.payloads(tenant, ids).await?).await
    }

    async fn deliveries(&self, tenant: &TenantId, query: DeliveryQuery) -> Result<DeliveryPage, StoreError> {
        let (at, store) = self.of(tenant)?;
        self.confirmed(tenant, at, store.deliveries(tenant, query).await?).await
    }

    async fn deliveries_by_subject(
        &self,
        tenant: &TenantId,
        subject: &str,
    ) -> Result<Vec<(Mailbox, Delivery)>, StoreError> {
        let (at, store) = self.of(tenant)?;
        self.confirmed(tenant, at, store.deliveries_by_subject(tenant, subject).await?).await
    }

    async fn heads(&self, mailboxes: &[MailboxKey]) -> Result<Vec<Option<u64>>, StoreError> {
        let mut by_shard: Vec<(Vec<usize>, Vec<MailboxKey>)> = vec![Default::default(); self.shards.len()];
        for (position, mailbox) in mailboxes.iter().enumerate() {
            let location = self.location(&mailbox.tenant);
            let of_shard = by_shard.get_mut(usize::from(location.shard.0)).filter(|_| !location.is_leaving);
            if let Some((positions, of_shard)) = of_shard {
                positions.push(position);
                of_shard.push(mailbox.clone());
            }
        }
        let asked: Vec<_> =
            by_shard.into_iter().enumerate().filter(|(_, (_, of_shard))| !of_shard.is_empty()).collect();
        if asked.is_empty() && !mailboxes.is_empty() {
            return Err(StoreError::Moved);
        }
        let calls = asked.iter().map(|(at, (_, of_shard))| {
            (*at, async move {
                let heads = self.shards[*at].store()?.heads(of_shard).await?;
                let shard = Shard(u16::try_from(*at).unwrap_or(u16::MAX));
                self.is_still(std::iter::empty(), shard).await?;
                let known = of_shard.iter().zip(heads);
                Ok(known
                    .map(|(mailbox, head)| head.filter(|_| self.is_at(&mailbox.tenant, shard)))
                    .collect::<Vec<_>>())
            })
        });
        let mut heads = vec![None; mailboxes.len()];
        for (at, of_shard) in self.on_shards(calls).await? {
            let positions = asked.iter().find(|(asked, _)| *asked == at).map(|(_, (positions, _))| positions);
            for (position, head) in positions.into_iter().flatten().zip(of_shard) {
                heads[*position] = head;
            }
        }
        Ok(heads)
    }

    async fn noted(&self, shard: Shard, since: Option<u64>) -> Result<NotedPage, StoreError> {
        let shard = self.shard(shard)?;
        shard.in_time(async { shard.store()?.noted(Shard(0), since).await }).await
    }

    async fn forget_noted(&self, shard: Shard, before: u64, limit: u32) -> Result<u64, StoreError> {
        self.shard(shard)?.store()?.forget_noted(Shard(0), before, limit).await
    }

    /// Those that are on this shard, and not what is left of others or arrives.
    async fn tenants(
        &self,
        shard: Shard,
        after: Option<&TenantId>,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        let store = self.shard(shard)?.store()?;
        let (mut found, mut after) = (Vec::new(), after.cloned());
        loop {
            let left = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            let more = store.tenants(Shard(0), after.as_ref(), left).await?;
            let Some(last) = more.last() else { return Ok(found) };
            after = Some(last.clone());
            found.extend(more.into_iter().filter(|tenant| self.location(tenant).shard == shard));
            if found.len() >= limit as usize {
                return Ok(found);
            }
        }
    }

    async fn in_inboxes(&self, shard: Shard, limit: u32) -> Result<InInboxes, StoreError> {
        self.shard(shard)?.store()?.in_inboxes(Shard(0), limit).await
    }

    async fn stored_bytes(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let (at, store) = self.of(tenant)?;
        self.confirmed(tenant, at, store.stored_bytes(tenant).await?).await
    }

    async fn erase(&self, tenant: &TenantId, limit: u32) -> Result<u64, StoreError> {
        let (at, store) = self.of(tenant)?;
        self.confirmed(tenant, at, store.erase(tenant, limit).await?).await
    }

    async fn scan(
        &self,
        tenant: &TenantId,
        kind: Kind,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        let (at, store) = self.of(tenant)?;
        self.confirmed(tenant, at, store.scan(tenant, kind, after, limit).await?).await
    }

    /// An equal share from each shard first, and then the rest from those that may have more: what is claimed must be
    /// returned, so none is asked for more than fits.
    async fn claim_due(&self, limit: u32) -> Result<(Vec<Due>, Timestamp), StoreError> {
        let count = self.shards.len();
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let (share, left) = (limit / u32::from(self.shard_count()), limit as usize % count);
        let shares: Vec<(usize, u32)> =
            (0..count).map(|at| ((first + at) % count, share + u32::from(at < left))).collect();
        let (mut all, mut times) = (Vec::new(), Vec::new());
        let mut may_have_more = Vec::new();
        for (at, (due, now)) in self.claim(&shares).await? {
            let asked = shares.iter().find(|share| share.0 == at).map_or(0, |share| share.1 as usize);
            if due.len() >= asked {
                may_have_more.push(at);
            }
            all.extend(due.into_iter().map(|due| (at, due)));
            times.push(now);
        }
        for at in may_have_more {
            let rest = limit - u32::try_from(all.len()).unwrap_or(limit).min(limit);
            if rest == 0 {
                break;
            }
            // What was claimed already is returned, whatever becomes of this.
            for (_, (due, _)) in self.claim(&[(at, rest)]).await.unwrap_or_default() {
                all.extend(due.into_iter().map(|due| (at, due)));
            }
        }
        let is_at =
            |at: usize, due: &Due| self.is_at(&due.tenant, Shard(u16::try_from(at).unwrap_or(u16::MAX)));
        let mut all: Vec<Due> =
            all.into_iter().filter(|(at, due)| is_at(*at, due)).map(|(_, due)| due).collect();
        all.sort_by(|one, other| (one.at, &one.tenant, &one.key).cmp(&(other.at, &other.tenant, &other.key)));
        let now = times.into_iter().min().ok_or_else(|| StoreError::unavailable("no shard answered"))?;
        Ok((all, now))
    }

    async fn sweep_orphans(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let share = limit.div_ceil(u32::from(self.shard_count()));
        let calls = self.shards.iter().enumerate();
        let calls =
            calls.map(|(at, shard)| (at, async move { shard.store()?.sweep_orphans(before, share).await }));
        Ok(self.on_shards(calls).await?.into_iter().map(|(_, count)| count).sum())
    }

    async fn sweep_audit(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let share = limit.div_ceil(u32::from(self.shard_count()));
        let calls = self.shards.iter().enumerate();
        let calls =
            calls.map(|(at, shard)| (at, async move { shard.store()?.sweep_audit(before, share).await }));
        Ok(self.on_shards(calls).await?.into_iter().map(|(_, count)| count).sum())
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let calls = self.shards.iter().enumerate();
        let times =
            self.on_shards(calls.map(|(at, shard)| (at, async move { shard.store()?.now().await }))).await?;
        let earliest = times.into_iter().map(|(_, now)| now).min();
        earliest.ok_or_else(|| StoreError::unavailable("no shard answered"))
    }

    fn estimated_now(&self, tenant: &TenantId) -> Option<Timestamp> {
        self.of(tenant).ok()?.1.estimated_now(tenant)
    }

    /// Changes with each of the shards' histories.
    fn timeline(&self) -> u64 {
        let timelines = self.shards.iter().map(|shard| shard.store().map_or(0, |store| store.timeline()));
        timelines.fold(0, |all, timeline| all.wrapping_mul(31).wrapping_add(timeline))
    }

    fn shard_count(&self) -> u16 {
        u16::try_from(self.shards.len()).unwrap_or(u16::MAX)
    }

    fn shard_of(&self, tenant: &TenantId) -> Shard {
        self.location(tenant).shard
    }
}
