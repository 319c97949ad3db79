//! What time does: expiry, retention, orphans, the end of the audit log. Every node sweeps; each claims what it processes, so that two don't do the
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

/// Rows of the audit log that are deleted at once, and how often in one sweep: more than can be written in the time until
/// the next.
const AUDIT_ROWS: u32 = 1_000;
const AUDIT_CHUNKS: usize = 50;

/// A sweep ends after this time even if more is due, so that orphans have their turn.
const ROUND: Duration = Duration::from_secs(10);

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Due records that were processed.
    pub processed: u64,
    /// Bodies that were deleted because their commit never came.
    pub orphans: u64,
    /// Rows of the audit log that were deleted one by one, because they were old.
    pub audit_rows: u64,
}

impl Gateway {
    /// Processes all that is due, and deletes orphans and old rows of the audit log.
    pub async fn sweep(&self) -> Result<Swept, Error> {
        let mut swept = Swept { processed: self.sweep_due().await?, ..Swept::default() };
        let now = self.store.now().await?;
        swept.orphans = self.store.sweep_orphans(now.minus(self.retention.orphan), ORPHANS).await?;
        self.metrics.sweeper.orphans.inc_by(swept.orphans);
        for _ in 0..AUDIT_CHUNKS {
            let rows = self.store.sweep_audit(now.minus(self.retention.audit), AUDIT_ROWS).await?;
            swept.audit_rows += rows;
            self.metrics.sweeper.audit_rows.inc_by(rows);
            if rows < u64::from(AUDIT_ROWS) {
                break;
            }
        }
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
            if let Ok(failed) = timeout(CLAIM, self.process_all_due(due)).await {
                processed += count;
                metrics.processed.inc_by(count);
                for failed in failed {
                    processed -= failed.records.len() as u64;
                    metrics.failed.inc_by(failed.records.len() as u64);
                    log(&failed);
                }
            } else {
                metrics.failed.inc_by(count);
                tracing::warn!(records = count, "claims lapsed before all due records were processed");
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
