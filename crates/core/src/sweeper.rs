//! What time does: expiry, retention, orphans. Every node sweeps; each claims what it processes, so that two don't do the
//! same work, and where a claim has lapsed they only meet at the guards.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::timeout;

use crate::{
    error::Error,
    gateway::Gateway,
    lifecycle::NotProcessed,
    store::{CLAIM, Kind},
};

/// Due records that are claimed at once: many for each claim and each read, and done long before the claim lapses.
const CHUNK: u32 = 1_000;

/// Orphans that are deleted in one sweep.
const ORPHANS: u32 = 200;

/// A sweep ends after this time even if more is due, so that orphans have their turn.
const ROUND: Duration = Duration::from_secs(10);

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Due records that were processed.
    pub processed: u64,
    /// Bodies that were deleted because their commit never came.
    pub orphans: u64,
}

impl Gateway {
    /// Processes all that is due, and deletes orphans.
    pub async fn sweep(&self) -> Result<Swept, Error> {
        let mut swept = Swept { processed: self.sweep_due().await?, orphans: 0 };
        let before = self.store.now().await?.minus(self.retention.orphan);
        swept.orphans = self.store.sweep_orphans(before, ORPHANS).await?;
        self.metrics.sweeper.orphans.inc_by(swept.orphans);
        Ok(swept)
    }

    async fn sweep_due(&self) -> Result<u64, Error> {
        let (mut processed, mut began) = (0, None);
        let metrics = &self.metrics.sweeper;
        let mut lag = Duration::ZERO;
        loop {
            let (due, now) = self.store.claim_due(CHUNK).await?;
            let is_last = due.is_empty() || now > began.get_or_insert(now).plus(ROUND);
            lag = due.iter().map(|due| now.since(due.at)).max().unwrap_or_default().max(lag);
            metrics.lag_millis.set(lag.as_millis().try_into().unwrap_or(i64::MAX));
            let count = due.len() as u64;
            // What takes longer is anybody's again: a shard that has become unavailable must not hold up the others.
            match timeout(CLAIM, self.process_all_due(due)).await {
                Ok(failed) => {
                    processed += count;
                    metrics.processed.inc_by(count);
                    for failed in failed {
                        processed -= failed.records.len() as u64;
                        metrics.failed.inc_by(failed.records.len() as u64);
                        log(&failed);
                    }
                }
                Err(_) => {
                    metrics.failed.inc_by(count);
                    tracing::warn!(records = count, "claims lapsed before all due records were processed");
                }
            }
            if is_last {
                return Ok(processed);
            }
        }
    }
}

/// What failed stays claimed and is tried again when the claim lapses, so that it does not block the others.
fn log(failed: &NotProcessed) {
    let NotProcessed { tenant, records, error } = failed;
    let kinds: BTreeSet<Kind> = records.iter().map(|key| key.kind).collect();
    tracing::warn!(
        %error, %tenant, ?kinds, records = records.len(), "due records were not processed; they will be retried"
    );
}
