//! Enforcers' channels close. What can't be closed now is retried by one task for each enforcer.

use std::time::Duration;

use countersign_wire::id::{EnforcerId, TenantId};
use tokio::time::sleep;

use super::channels::{put_channels, unchanged};
use crate::{
    closings::Closing,
    error::Error,
    gateway::{Evaluation, Gateway, mailbox_ring},
    load::record_of,
    model::{
        channels::{ChannelNumber, Channels},
        presence::Presence,
    },
    store::{Mailbox, Stored as _},
};

/// The first delay before closing is retried, and the longest.
const CLOSE_RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

impl Gateway {
    /// Closes a channel, and wakes the next newest.
    pub async fn close_channel(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        number: ChannelNumber,
    ) -> Result<(), Error> {
        self.close(tenant, enforcer, &Closing::of_number(number)).await
    }

    /// Closes a channel in the background, and tries again until it succeeds: this node is alive, so its open channels
    /// count.
    pub fn close_channel_until_done(&self, tenant: &TenantId, enforcer: &EnforcerId, number: ChannelNumber) {
        self.close_until_done(tenant, enforcer, Closing::of_number(number));
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

    async fn close(&self, tenant: &TenantId, enforcer: &EnforcerId, closing: &Closing) -> Result<(), Error> {
        let load = (record_of::<Channels>(enforcer), record_of::<Presence>(enforcer));
        self.update(tenant, &load, |(known, presence), now| {
            let mut next = known.as_ref().map(|known| known.value.clone()).unwrap_or_default();
            let before = next.open.len();
            closing.numbers.iter().for_each(|number| _ = next.close(*number));
            closing.attempts.iter().for_each(|attempt| _ = next.close_attempt(attempt));
            let is_closed = next.open.len() < before;
            if !is_closed && closing.attempts.is_empty() {
                // Confirmed by a commit: a failover may undo what has removed it, and then nobody would remove it again.
                return Ok(Evaluation::commit(unchanged(tenant, enforcer, known.as_ref()), ()));
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
        .await
    }
}
