//! The two round trips of a transaction. The statements of each are pipelined: sent together, answered together.

use std::collections::{HashMap, HashSet};

use countersign_core::store::PayloadId;
use countersign_wire::timestamp::Timestamp;
use futures_util::future::join_all;
use tokio_postgres::{Client, Error, Row, Statement, types::ToSql};

use crate::{
    columns::{self, Columns},
    plan::{Begun, IfMissing, LockedRecords, MailboxName, NamedRecords, ReservedRecords, Writes},
    rows::{payload_id, payload_id_column, record, record_key, to_u64},
    statements::Statements,
};

/// The first round trip: begins a transaction, locks or reserves the records that the batch names, and reads the clock.
pub(crate) async fn begin(
    client: &Client,
    statements: &Statements,
    named: &NamedRecords,
    pending_payloads: &[PayloadId],
) -> Result<Begun, Error> {
    let any_to_reserve = named.values().any(|if_missing| *if_missing != IfMissing::Ignore);
    let reserve_records = async {
        match any_to_reserve {
            true => query(client, &statements.reserve_records, &columns::reserved_columns(named)).await,
            false => Ok(Vec::new()),
        }
    };
    let read_records = async {
        let statement = if any_to_reserve { &statements.read_records } else { &statements.lock_records };
        query(client, statement, &columns::named_columns(named)).await
    };
    let payload_ids = payload_id_column(pending_payloads);
    let lock_payloads = async {
        match pending_payloads.is_empty() {
            true => Ok(Vec::new()),
            false => client.query(&statements.lock_pending_payloads, &[&payload_ids]).await,
        }
    };
    let (begun, inserted, records, payloads, now) = tokio::join!(
        biased;
        client.batch_execute("BEGIN"),
        reserve_records,
        read_records,
        lock_payloads,
        client.query_one(&statements.now, &[]),
    );
    begun?;
    let mut reserved = ReservedRecords::new();
    for row in inserted? {
        if let Ok(key) = record_key(&row)
            && let Some(if_missing) = named.get(&key)
        {
            let draft = match if_missing {
                IfMissing::Draft(content) => Some(content.clone()),
                IfMissing::Ignore | IfMissing::Reserve => None,
            };
            reserved.insert(key, draft);
        }
    }
    let mut locked = LockedRecords::new();
    for row in records? {
        if let (Ok(key), Ok(record)) = (record_key(&row), record(&row))
            && !reserved.contains_key(&key)
        {
            locked.insert(key, (record.version, record.content));
        }
    }
    let mut swept: HashSet<PayloadId> = pending_payloads.iter().copied().collect();
    for row in payloads? {
        let id: &[u8] = row.try_get(0)?;
        if let Ok(id) = payload_id(id) {
            swept.remove(&id);
        }
    }
    Ok(Begun { locked, reserved, swept, now: Timestamp::from_unix_micros(now?.try_get(0)?) })
}

async fn query(client: &Client, statement: &Statement, columns: &Columns) -> Result<Vec<Row>, Error> {
    let columns: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as _).collect();
    client.query(statement, &columns).await
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
    let executions = batch.iter().map(|(statement, columns)| query(client, statement, columns));
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
