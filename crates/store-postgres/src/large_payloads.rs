//! Writes large payloads before the commit that needs them, so that they never delay a batch.
//!
//! Until that commit they are listed in `payload_pending`, and reads do not see them.

use std::sync::Arc;

use bytes::Bytes;
use countersign_core::{
    fair::FairSemaphore,
    store::{Change, PayloadId, StoreError, error_chain},
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};

use crate::{
    connections::Connections,
    rows::{payload_id_bytes, payload_id_column},
};

/// A payload up to this size is written in the transaction of its change.
const MAX_INLINE_BYTES: usize = 64 << 10;

/// Concurrent writes of large payloads: more would only share the same disk.
const MAX_CONCURRENT_WRITES: usize = 2;

pub(crate) const WRITE: &str = "WITH inserted AS (INSERT INTO payload (id, tenant, content) VALUES ($1, $2, $3)) \
    INSERT INTO payload_pending (id, at) VALUES ($1, gateway_now())";
pub(crate) const DISCARD: &str = "WITH dropped AS (DELETE FROM payload_pending WHERE id = ANY($1) RETURNING id) \
    DELETE FROM payload USING dropped WHERE payload.id = dropped.id";
pub(crate) const SWEEP: &str = "WITH swept AS (DELETE FROM payload_pending WHERE id IN ( \
        SELECT id FROM payload_pending WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id) \
    DELETE FROM payload USING swept WHERE payload.id = swept.id";

#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Connection(#[from] StoreError),
    #[error("PostgreSQL can't be used")]
    Engine(#[from] tokio_postgres::Error),
}

#[derive(Debug)]
pub(crate) struct LargePayloadWriter {
    connections: Arc<Connections>,
    permits: FairSemaphore,
}

impl LargePayloadWriter {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections, permits: FairSemaphore::new(MAX_CONCURRENT_WRITES) }
    }

    /// Moves the large payloads of `change` to the database and returns their ids, which the commit must confirm.
    pub(crate) async fn write_pending(&self, change: &mut Change) -> Result<Vec<PayloadId>, StoreError> {
        let large: Vec<(PayloadId, Bytes)> =
            change.payloads.extract_if(.., |(_, bytes)| bytes.len() > MAX_INLINE_BYTES).collect();
        let ids: Vec<PayloadId> = large.iter().map(|(id, _)| *id).collect();
        for (at, (id, bytes)) in large.iter().enumerate() {
            if let Err(error) = self.write(&change.tenant, *id, bytes).await {
                // Where the server refused it, the id may be somebody else's; where the connection failed, the payload
                // may be there.
                let is_refused = matches!(&error, WriteError::Engine(error) if error.as_db_error().is_some());
                self.discard(&ids[..if is_refused { at } else { at + 1 }]).await;
                return Err(match error {
                    WriteError::Connection(error) => error,
                    error @ WriteError::Engine(_) => StoreError::unavailable(error),
                });
            }
        }
        Ok(ids)
    }

    async fn write(&self, tenant: &TenantId, id: PayloadId, bytes: &Bytes) -> Result<(), WriteError> {
        let _permit = self.permits.acquire(tenant).await;
        let client = self.connections.get(tenant).await?;
        let statement = client.prepare_cached(WRITE).await?;
        let id: &[u8] = &payload_id_bytes(id);
        client.execute(&statement, &[&id, &tenant.as_str(), &bytes.as_ref()]).await?;
        Ok(())
    }

    /// Deletes pending payloads of a change that was not committed. The sweeper deletes what fails here.
    pub(crate) async fn discard(&self, ids: &[PayloadId]) {
        if ids.is_empty() {
            return;
        }
        let discard = async {
            let client = self.connections.get_for_all().await?;
            client.execute(DISCARD, &[&payload_id_column(ids)]).await?;
            Ok::<_, WriteError>(())
        };
        if let Err(error) = discard.await {
            tracing::warn!(
                error = error_chain(&error),
                "pending payloads of a failed change were not deleted; the sweeper will delete them"
            );
        }
    }

    /// Deletes payloads that were written before this time and never confirmed by a commit.
    pub(crate) async fn sweep(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let client = self.connections.get_for_all().await?;
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
            [&before.unix_micros(), &i64::from(limit)];
        client.execute(SWEEP, &params).await.map_err(StoreError::unavailable)
    }
}
