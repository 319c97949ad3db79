//! What time does: expiry, retention, orphans. Any node may sweep; two at once only meet at the guards.

use std::time::Duration;

use countersign_wire::timestamp::Timestamp;

use crate::{
    error::Error,
    gateway::Gateway,
    store::{Change, Due},
};

/// Due entries that one read brings.
const BATCH: u32 = 200;

/// An entry that failed is due again after this.
const RETRY_DELAY: Duration = Duration::from_mins(1);

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Due entries that were processed.
    pub processed: u64,
    /// Bodies that were deleted because their commit never came.
    pub orphans: u64,
}

impl Gateway {
    /// Processes all that is due, and deletes orphans.
    pub async fn sweep(&self) -> Result<Swept, Error> {
        let mut swept = Swept { processed: self.sweep_due().await?, orphans: 0 };
        let before = self.store.now().await?.minus(self.retention.orphan);
        swept.orphans = self.store.sweep_orphans(before, BATCH).await?;
        Ok(swept)
    }

    /// One entry that fails must not block the others.
    async fn postpone(&self, due: &Due, error: &Error, now: Timestamp) -> Result<(), Error> {
        tracing::warn!(%error, kind = ?due.key.kind, "a due record was not processed; it will be retried");
        let mut later = Change::new(due.tenant.clone());
        later.no_longer_due.push((due.at, due.key.clone()));
        later.due.push((now.plus(RETRY_DELAY), due.key.clone()));
        self.commit(later, None).await.map(drop)
    }

    async fn sweep_due(&self) -> Result<u64, Error> {
        let mut processed = 0;
        loop {
            let (due, now) = self.store.due(BATCH).await?;
            let count = due.len();
            for (due, error) in self.process_all_due(due, now).await {
                self.postpone(&due, &error, now).await?;
            }
            processed += count as u64;
            if count < BATCH as usize {
                return Ok(processed);
            }
        }
    }
}
