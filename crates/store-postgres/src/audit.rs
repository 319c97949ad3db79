//! The months of the audit log: those ahead are made, those that are over are dropped.
//!
//! A row whose month has no partition is in the default one, so no commit depends on what happens here. A month that has
//! rows there stays there, and they are deleted one by one when they are old.

use std::{sync::Arc, time::Duration};

use countersign_core::store::{StoreError, error_chain};
use countersign_wire::timestamp::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_postgres::{Client, Error, Row, Transaction};

use crate::connections::Connections;

/// Only one node changes partitions at a time; the others need not.
const LOCK: i64 = 0x00c0_0a7e_2516_0002;

/// Dropping a month locks the table against commits for an instant. Where something else has it, a dump for example,
/// commits wait for as long as this; then it is left for later.
const LIMITS: &str = "SET LOCAL lock_timeout = '200ms'; SET LOCAL statement_timeout = '2s'";

/// After a change of partitions has failed. Most likely the same thing would be in the way.
const RETRY_DELAY: Duration = Duration::from_mins(30);

/// This month and the next, by the store's clock, as far as they have neither a partition nor rows in the default one.
pub(crate) const MISSING: &str = "SELECT name, starts, ends FROM ( \
        SELECT 'audit_' || to_char(month, 'YYYYMM') AS name, \
            (extract(epoch FROM month) * 1000000)::bigint AS starts, \
            (extract(epoch FROM month + interval '1 month') * 1000000)::bigint AS ends \
        FROM (SELECT date_trunc('month', to_timestamp(gateway_now() / 1000000) AT TIME ZONE 'UTC') \
            + make_interval(months => n) AS month FROM generate_series(0, 1) n) m) wanted \
    WHERE to_regclass(name) IS NULL \
        AND NOT EXISTS (SELECT FROM audit_default WHERE at >= starts AND at < ends) ORDER BY starts";

/// The months that ended before a time, oldest first. Their names say which they are.
pub(crate) const OVER: &str = "SELECT c.relname::text AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
    WHERE i.inhparent = 'audit'::regclass AND CASE WHEN c.relname ~ '^audit_[0-9]{6}$' THEN \
        extract(epoch FROM to_date(right(c.relname, 6), 'YYYYMM') + interval '1 month') * 1000000 <= $1::bigint END \
    ORDER BY c.relname";

pub(crate) const DELETE: &str = "DELETE FROM audit_default WHERE ctid = ANY(ARRAY( \
    SELECT ctid FROM audit_default WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))";

#[derive(Debug)]
pub(crate) struct AuditLog {
    connections: Arc<Connections>,
    /// When partitions may be changed again; `None` unless it has failed.
    not_before: Mutex<Option<Instant>>,
}

impl AuditLog {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections, not_before: Mutex::default() }
    }

    /// Makes the months ahead, drops those that ended before this time, and deletes up to `limit` older rows of the
    /// default partition; says how many these were.
    pub(crate) async fn sweep(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut client = self.connections.get_for_all().await?;
        if self.may_change_partitions()
            && let Err(error) = change_partitions(&mut client, before).await
        {
            let error = error_chain(&error);
            tracing::warn!(error, "the partitions of the audit log were not changed; it will be retried");
            *self.not_before.lock() = Some(Instant::now() + RETRY_DELAY);
        }
        let statement = client.prepare_cached(DELETE).await.map_err(StoreError::unavailable)?;
        let deleted = client.execute(&statement, &[&before.unix_micros(), &i64::from(limit)]).await;
        deleted.map_err(StoreError::unavailable)
    }

    fn may_change_partitions(&self) -> bool {
        let not_before = *self.not_before.lock();
        not_before.is_none_or(|not_before| Instant::now() >= not_before)
    }
}

/// Makes this month and the next. Not being able to is no reason not to start.
pub(crate) async fn prepare(client: &mut Client) {
    if let Err(error) = make_missing(client).await {
        let error = error_chain(&error);
        tracing::warn!(error, "the partitions of the audit log were not made; it will be retried");
    }
}

async fn change_partitions(client: &mut Client, before: Timestamp) -> Result<(), Error> {
    make_missing(client).await?;
    for over in client.query(OVER, &[&before.unix_micros()]).await? {
        let name: String = over.try_get("name")?;
        let drop = format!("ALTER TABLE audit DETACH PARTITION {name}; DROP TABLE {name}");
        change(client, &drop, &name, true).await?;
    }
    Ok(())
}

async fn make_missing(client: &mut Client) -> Result<(), Error> {
    for month in client.query(MISSING, &[]).await? {
        let (name, make) = make(&month)?;
        change(client, &make, &name, false).await?;
    }
    Ok(())
}

/// A table of its own first: made as a partition at once, it would lock the log against commits. Attaching it locks the
/// default partition only, to see that none of its rows belongs here.
fn make(month: &Row) -> Result<(String, String), Error> {
    let (name, starts, ends): (String, i64, i64) =
        (month.try_get("name")?, month.try_get("starts")?, month.try_get("ends")?);
    let make = format!(
        "CREATE TABLE {name} (LIKE audit INCLUDING DEFAULTS); \
         ALTER TABLE audit ATTACH PARTITION {name} FOR VALUES FROM ({starts}) TO ({ends})"
    );
    Ok((name, make))
}

/// Runs statements that make or drop the partition `name`, unless another node is just at it or has done so.
async fn change(client: &mut Client, statements: &str, name: &str, exists: bool) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    if is_ours(&transaction, name, exists).await? {
        transaction.batch_execute(LIMITS).await?;
        transaction.batch_execute(statements).await?;
    }
    transaction.commit().await
}

async fn is_ours(transaction: &Transaction<'_>, name: &str, exists: bool) -> Result<bool, Error> {
    let locked = transaction.query_one("SELECT pg_try_advisory_xact_lock($1)", &[&LOCK]).await?;
    if !locked.try_get::<_, bool>(0)? {
        return Ok(false);
    }
    let found = transaction.query_one("SELECT to_regclass($1) IS NOT NULL", &[&name]).await?;
    Ok(found.try_get::<_, bool>(0)? == exists)
}
