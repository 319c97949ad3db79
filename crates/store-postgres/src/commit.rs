//! The two round trips of a transaction. The statements of each are pipelined: sent together, answered together.

use std::collections::{HashMap, HashSet};

use countersign_core::store::PayloadId;
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use futures_util::future::join_all;
use tokio_postgres::{Client, Error, Row, types::ToSql};

use crate::{
    columns::{self, key_columns},
    plan::{LockedRecords, MailboxName, RecordKey, Writes},
    rows::{payload_id, payload_id_column, record, to_u64},
    statements::Statements,
};

/// What the first round trip found.
pub(crate) struct Begun {
    pub(crate) locked: LockedRecords,
    /// Pending payloads that the sweeper has deleted.
    pub(crate) swept: HashSet<PayloadId>,
    /// The store's time, read after the locks were granted.
    pub(crate) now: Timestamp,
}

/// The first round trip: begins a transaction, locks the records that the batch names, and reads the clock.
pub(crate) async fn begin(
    client: &Client,
    statements: &Statements,
    keys: &[RecordKey],
    pending_payloads: &[PayloadId],
) -> Result<Begun, Error> {
    let keys = key_columns(keys);
    let keys: Vec<&(dyn ToSql + Sync)> = keys.iter().map(|column| &**column as _).collect();
    let payload_ids = payload_id_column(pending_payloads);
    let lock_payloads = async {
        match pending_payloads.is_empty() {
            true => Ok(Vec::new()),
            false => client.query(&statements.lock_pending_payloads, &[&payload_ids]).await,
        }
    };
    let (begun, records, payloads, now) = tokio::join!(
        biased;
        client.batch_execute("BEGIN"),
        client.query(&statements.lock_records, &keys),
        lock_payloads,
        client.query_one(&statements.now, &[]),
    );
    begun?;
    let mut locked = LockedRecords::new();
    for row in records? {
        let tenant: &str = row.try_get("tenant")?;
        if let (Ok(tenant), Ok(record)) = (tenant.parse::<TenantId>(), record(&row)) {
            locked.insert((tenant, record.key), (record.version, record.content));
        }
    }
    let mut swept: HashSet<PayloadId> = pending_payloads.iter().copied().collect();
    for row in payloads? {
        let id: &[u8] = row.try_get(0)?;
        if let Ok(id) = payload_id(id) {
            swept.remove(&id);
        }
    }
    Ok(Begun { locked, swept, now: Timestamp::from_unix_micros(now?.try_get(0)?) })
}

/// The newest number of each mailbox that the transaction delivered to.
pub(crate) type Counters = HashMap<MailboxName, u64>;

/// How the second round trip ended.
pub(crate) enum CommitResult {
    /// The transaction is durable.
    Committed(Counters),
    /// The server rejected a statement, so nothing was written.
    Rejected(Error),
    /// The connection broke, or the server did not confirm the commit.
    Unknown,
}

/// The second round trip: writes everything and commits.
pub(crate) async fn write_and_commit(
    client: &Client,
    statements: &Statements,
    writes: &Writes,
    now: Timestamp,
) -> CommitResult {
    let batch = columns::batch(statements, writes, now);
    let executions = batch.iter().map(|(statement, columns)| async move {
        let columns: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as _).collect();
        client.query(*statement, &columns).await
    });
    let (results, commit) = tokio::join!(biased; join_all(executions), client.batch_execute("COMMIT"));
    let mut counters = Counters::new();
    for result in results {
        match result {
            Ok(rows) => counters.extend(rows.iter().filter_map(counter)),
            // After a rejected statement, COMMIT rolls the transaction back.
            Err(error) if error.as_db_error().is_some() => return CommitResult::Rejected(error),
            Err(_) => return CommitResult::Unknown,
        }
    }
    match commit {
        Ok(()) => CommitResult::Committed(counters),
        Err(_) => CommitResult::Unknown,
    }
}

fn counter(row: &Row) -> Option<(MailboxName, u64)> {
    let tenant: &str = row.try_get("tenant").ok()?;
    let counter: i64 = row.try_get("counter").ok()?;
    Some(((tenant.parse().ok()?, row.try_get("name").ok()?), to_u64(counter)))
}
