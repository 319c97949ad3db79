//! Enforcers' channels close. What can't be closed now is retried by one task for each enforcer.

use std::{collections::BTreeMap, time::Duration};

use countersign_wire::id::{EnforcerId, TenantId};
use tokio::time::sleep;

use super::channels::put_channels;
use crate::{
    closings::{Closing, Unconfirmed},
    error::Error,
    gateway::{Evaluation, Gateway, mailbox_ring},
    load::record_of,
    model::{
        channels::{ChannelId, Channels},
        presence::Presence,
    },
    store::{Key, Mailbox, Shard, StoreError, Stored as _},
};

/// The first delay before closing is retried, and the longest.
const CLOSE_RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// So many are read at once.
const CONFIRMED_AT_ONCE: usize = 100;

impl Gateway {
    /// Closes a channel, and wakes the next newest.
    pub async fn close_channel(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        channel: &ChannelId,
    ) -> Result<(), Error> {
        self.close(tenant, enforcer, &Closing::opened(channel)).await
    }

    /// Closes a channel in the background, and tries again until it succeeds: this node is alive, so its open channels
    /// count.
    pub fn close_channel_until_done(&self, tenant: &TenantId, enforcer: &EnforcerId, channel: &ChannelId) {
        self.close_until_done(tenant, enforcer, Closing::opened(channel));
    }

    pub(super) fn close_until_done(&self, tenant: &TenantId, enforcer: &EnforcerId, closing: Closing) {
        let key = (tenant.clone(), enforcer.clone());
        if self.closings.add(&key, closing) {
            let gateway = self.clone();
            tokio::spawn(async move { gateway.close_pending(key).await });
        }
    }

    /// Closes what is pending for an enforcer, until nothing is.
    async fn close_pending(&self, key: (TenantId, EnforcerId)) {
        let (mut delay, longest) = CLOSE_RETRY_DELAY;
        while let Some(closing) = self.closings.get(&key) {
            match self.close(&key.0, &key.1, &closing).await {
                Ok(()) if self.closings.remove(&key, &closing) => return,
                Ok(()) => (delay, _) = CLOSE_RETRY_DELAY,
                Err(error) => {
                    tracing::debug!(%error, "channels were not closed in the store; it will be retried");
                    sleep(delay).await;
                    delay = longest.min(delay * 2);
                }
            }
        }
    }

    /// Closes in the store. The commit is carried by the node's lease: until that is renewed, a failover could undo it.
    async fn close(&self, tenant: &TenantId, enforcer: &EnforcerId, closing: &Closing) -> Result<(), Error> {
        let load = (record_of::<Channels>(enforcer), record_of::<Presence>(enforcer));
        self.update(tenant, &load, |(known, presence), now| {
            let mut next = known.as_ref().map(|known| known.value.clone()).unwrap_or_default();
            let before = next.open.len();
            closing.attempts().for_each(|attempt| _ = next.close(attempt));
            let is_closed = next.open.len() < before;
            if !is_closed && closing.unknown.is_empty() {
                return Ok(Evaluation::NothingToDo(()));
            }
            let mut change = put_channels(tenant, enforcer, known.as_ref(), &next)?;
            if !is_closed {
                // A write all the same: the commit that opens it may still come, and must meet another version.
                return Ok(Evaluation::commit(change, ()));
            }
            // Without its last channel an enforcer is offline until it is next seen.
            if let Some(presence) = presence.filter(|_| next.open.is_empty()) {
                let closed = Presence { last_seen_at: now, closed_at: Some(now), ..presence.value };
                change.puts.push(closed.put(load.1.key())?);
            }
            let ring = mailbox_ring(tenant, &Mailbox::Enforcer(enforcer.clone()));
            Ok(Evaluation::commit_and_ring(change, ring, ()))
        })
        .await?;
        match self.closings.closed(self.store.shard_of(tenant), tenant, enforcer, closing) {
            true => Ok(()),
            false => Err(StoreError::Overloaded.into()),
        }
    }

    /// The lease of this node is durable, and so is what was closed before it, unless the store has lost that in between: then
    /// the channel is there again, and nobody serves it. In the background: a lease does not wait for it.
    pub(super) fn confirm_closings(&self, shard: Shard, closed_before: u64) {
        let unconfirmed = self.closings.start_confirming(shard, closed_before);
        if unconfirmed.is_empty() {
            return;
        }
        let gateway = self.clone();
        tokio::spawn(async move {
            let confirmed = gateway.close_what_is_back(unconfirmed).await;
            if let Err(error) = &confirmed {
                tracing::debug!(%error, "closed channels were not confirmed; the next lease tries again");
            }
            gateway.closings.end_confirming(shard, confirmed.is_ok().then_some(closed_before));
        });
    }

    async fn close_what_is_back(&self, unconfirmed: Vec<Unconfirmed>) -> Result<(), Error> {
        let mut by_tenant: BTreeMap<TenantId, Vec<Unconfirmed>> = BTreeMap::new();
        for closed in unconfirmed {
            by_tenant.entry(closed.tenant.clone()).or_default().push(closed);
        }
        for (tenant, closed) in by_tenant {
            for closed in closed.chunks(CONFIRMED_AT_ONCE) {
                let keys: Vec<Key> = closed.iter().map(|closed| Channels::key(&closed.enforcer)).collect();
                let records = self.store.load(&tenant, &keys).await?.records;
                for (closed, record) in closed.iter().zip(&records) {
                    let is_back = Channels::read(record.as_ref())?
                        .is_some_and(|known| known.value.has(&closed.attempt));
                    if is_back {
                        let closing = Closing { opened: vec![closed.attempt.clone()], ..Closing::default() };
                        self.close_until_done(&tenant, &closed.enforcer, closing);
                    }
                }
            }
        }
        Ok(())
    }
}
