//! What commits have changed, as the triggers of the schema have noted it.

use countersign_core::store::{MailboxKey, NOTED_CHUNK, Noted, NotedPage, StoreError, error_chain};
use tokio_postgres::Row;

use crate::{
    reads::{Reads, clock_row, drop_clock_row},
    rows::{count, get, record_key, timestamp, to_i64},
};

/// From a transaction on, whole transactions. Transactions get their numbers when they begin to write and commit in any
/// order: below the oldest that still runs nothing is missing. What is ahead of all transactions is of another cluster, from
/// which this database was restored.
pub(crate) const READ: &str = "SELECT s.now, s.settled, n.xid::text::bigint AS xid, n.tenant, n.kind, n.id, n.number \
    FROM (SELECT gateway_now() AS now, pg_snapshot_xmin(snapshot)::text::bigint AS settled, \
        pg_snapshot_xmax(snapshot) AS next FROM pg_current_snapshot() snapshot) s \
    LEFT JOIN LATERAL (SELECT * FROM noted WHERE xid >= $1::bigint::text::xid8 AND xid < s.next \
        ORDER BY xid FETCH FIRST ($2::bigint) ROWS WITH TIES) n ON true ORDER BY n.xid";

/// Nobody waits until it is durable: what comes back after a crash is deleted again.
pub(crate) const FORGET: &str = "WITH asynchronous AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) \
    DELETE FROM noted USING asynchronous WHERE ctid = ANY(ARRAY( \
        SELECT ctid FROM noted WHERE xid < $1::bigint::text::xid8 ORDER BY xid LIMIT $2 FOR UPDATE SKIP LOCKED)) \
    OR ctid = ANY(ARRAY( \
        SELECT ctid FROM noted WHERE xid >= pg_snapshot_xmax(pg_current_snapshot()) \
        LIMIT $2 FOR UPDATE SKIP LOCKED))";

/// What was noted from a position on.
pub(crate) async fn read(reads: &Reads, since: Option<u64>) -> Result<NotedPage, StoreError> {
    let (since, limit) = (since.map_or(i64::MAX, to_i64), i64::from(NOTED_CHUNK));
    let mut rows = reads.query_for_all(READ, &[&since, &limit]).await?;
    let first = clock_row(&rows)?;
    let (now, settled) = (timestamp(first, "now")?, count(first, "settled")?);
    drop_clock_row(&mut rows, "xid");
    let is_full = rows.len() >= NOTED_CHUNK as usize;
    let last = rows.last().filter(|_| is_full).map(|row| count(row, "xid")).transpose()?;
    // A row that can't be decoded must not keep all others from being read.
    let log = |error: &StoreError| {
        tracing::error!(error = error_chain(error), "a row of the table noted can't be decoded");
    };
    let changes = rows.iter().filter_map(|row| decoded(row).inspect_err(log).ok()).collect();
    Ok(NotedPage { changes, more_from: last.map(|last| last + 1), settled, now })
}

fn decoded(row: &Row) -> Result<(Noted, u64), StoreError> {
    let number = count(row, "number")?;
    if get::<i16>(row, "kind")? != 0 {
        let (tenant, key) = record_key(row)?;
        return Ok((Noted::Record(tenant, key), number));
    }
    let (tenant, mailbox): (&str, &str) = (get(row, "tenant")?, get(row, "id")?);
    let tenant = tenant.parse().map_err(StoreError::corrupt)?;
    let mailbox = mailbox.parse().map_err(|error: String| StoreError::corrupt(error))?;
    Ok((Noted::Mailbox(MailboxKey { tenant, mailbox }), number))
}

/// Deletes up to `limit` rows from before this position; says how many.
pub(crate) async fn forget(reads: &Reads, before: u64, limit: u32) -> Result<u64, StoreError> {
    reads.execute_for_all(FORGET, &[&to_i64(before), &i64::from(limit)]).await
}
