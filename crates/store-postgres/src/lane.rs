//! The lane of large bodies: written before the commit that needs them, so that they never hold up a batch.

use std::sync::Arc;

use bytes::Bytes;
use countersign_core::store::{Change, PayloadId, StoreError};
use countersign_wire::timestamp::Timestamp;
use deadpool_postgres::Pool;
use tokio::sync::Semaphore;

use crate::{
    columns::id_column,
    reads::unavailable,
    rows::{payload_bytes, to_u64},
};

/// Up to this size a body goes with its batch.
const SMALL: usize = 64 << 10;

/// Large bodies written at the same time: more would only share the same disk.
const LANES: usize = 2;

const WRITE: &str = "WITH put AS (INSERT INTO payload (id, tenant, content) VALUES ($1, $2, $3)) \
    INSERT INTO payload_pending (id, at) VALUES ($1, gateway_now())";
const DISCARD: &str = "WITH dropped AS (DELETE FROM payload_pending WHERE id = ANY($1) RETURNING id) \
    DELETE FROM payload USING dropped WHERE payload.id = dropped.id";
const SWEEP: &str = "WITH swept AS (DELETE FROM payload_pending WHERE id IN ( \
        SELECT id FROM payload_pending WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id) \
    DELETE FROM payload USING swept WHERE payload.id = swept.id";

#[derive(Debug)]
pub(crate) struct Lane {
    pool: Pool,
    lanes: Arc<Semaphore>,
}

impl Lane {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool, lanes: Arc::new(Semaphore::new(LANES)) }
    }

    /// Writes the large bodies of `change` and takes them out of it; the commit settles their ids.
    pub(crate) async fn write_ahead(&self, change: &mut Change) -> Result<Vec<PayloadId>, StoreError> {
        let large: Vec<(PayloadId, Bytes)> =
            change.payloads.extract_if(.., |(_, bytes)| bytes.len() > SMALL).collect();
        for (id, bytes) in &large {
            let _lane = self.lanes.acquire().await.map_err(unavailable)?;
            let client = self.pool.get().await.map_err(unavailable)?;
            let statement = client.prepare_cached(WRITE).await.map_err(unavailable)?;
            let id: &[u8] = &payload_bytes(*id);
            let tenant = change.tenant.as_str();
            client.execute(&statement, &[&id, &tenant, &bytes.as_ref()]).await.map_err(unavailable)?;
        }
        Ok(large.into_iter().map(|(id, _)| id).collect())
    }

    /// Takes back what was written ahead for a change that was not committed. What fails here is swept.
    pub(crate) async fn discard(&self, ids: &[PayloadId]) {
        if ids.is_empty() {
            return;
        }
        if let Ok(client) = self.pool.get().await
            && let Err(error) = client.execute(DISCARD, &[&id_column(ids)]).await
        {
            tracing::warn!(%error, "a body that was written ahead is left to the sweeper");
        }
    }

    /// Removes bodies whose commit never came.
    pub(crate) async fn sweep(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let client = self.pool.get().await.map_err(unavailable)?;
        let limit = i64::from(limit);
        let swept = client.execute(SWEEP, &[&before.unix_micros(), &limit]).await.map_err(unavailable)?;
        Ok(to_u64(i64::try_from(swept).unwrap_or(i64::MAX)))
    }
}
