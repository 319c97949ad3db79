//! The two round trips of a transaction. The statements of each are pipelined: sent together, answered together.

use std::collections::{BTreeSet, HashMap, HashSet};

use countersign_core::store::{PayloadId, StoreError, error_chain};
use countersign_wire::timestamp::Timestamp;
use futures_util::future::join_all;
use tokio_postgres::{Client, Error, Row, Statement, types::ToSql};

use crate::{
    columns::{self, Columns},
    plan::{
        Begun, FoundRecords, IfMissing, MailboxName, NamedRecords, RecordKey, Reserved, ReservedRecords,
        Writes,
    },
    reads::clock_row,
    residences::{TenantInEpoch, lock_shared},
    rows::{count, get, payload_id, payload_id_column, record, record_key, timestamp},
    statements::Statements,
};

/// Why the first round trip failed. Nothing was written.
#[derive(Debug)]
pub(crate) enum BeginError {
    Engine(Error),
    /// The server's answer can't be decoded.
    Answer(StoreError),
}

impl From<Error> for BeginError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<StoreError> for BeginError {
    fn from(error: StoreError) -> Self {
        Self::Answer(error)
    }
}

/// How a transaction begins. One that a failover may undo does not wait for a disk ([`Change::is_carried_by_a_lease`]).
///
/// [`Change::is_carried_by_a_lease`]: countersign_core::store::Change::is_carried_by_a_lease
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    Durable,
    CarriedByALease,
}

impl Beginning {
    fn statement(self) -> &'static str {
        match self {
            Self::Durable => "BEGIN",
            Self::CarriedByALease => "BEGIN; SET LOCAL synchronous_commit = off",
        }
    }
}

/// The first round trip: begins a transaction, makes sure that the tenants stay where they are, locks or reserves the records
/// that the batch names, reads those that it has `seen`, and the clock.
pub(crate) async fn begin(
    client: &Client,
    statements: &Statements,
    beginning: Beginning,
    tenants: &BTreeSet<TenantInEpoch>,
    named: &NamedRecords,
    seen: &BTreeSet<RecordKey>,
    pending_payloads: &[PayloadId],
) -> Result<Begun, BeginError> {
    // Either reserves, which locks too, and reads; or locks, and reads what is only seen. It reads when the locks are granted.
    let any_to_reserve = named.values().any(|if_missing| *if_missing != IfMissing::Ignore);
    let (to_lock, to_read): (Vec<_>, Vec<_>) = match any_to_reserve {
        true => (Vec::new(), seen.iter().chain(may_exist(named)).collect()),
        false => (named.keys().collect(), seen.iter().collect()),
    };
    let reserve_records = async {
        match any_to_reserve {
            true => query(client, &statements.reserve_records, &columns::reserved_columns(named)).await,
            false => Ok(Vec::new()),
        }
    };
    let opening = format!("{}{}", beginning.statement(), lock_shared(tenants));
    let tenants: Vec<TenantInEpoch> = tenants.iter().cloned().collect();
    let tenant_columns = columns::tenant_columns(&tenants);
    let payload_ids = payload_id_column(pending_payloads);
    let lock_payloads = async {
        match pending_payloads.is_empty() {
            true => Ok(Vec::new()),
            false => client.query(&statements.lock_pending_payloads, &[&payload_ids]).await,
        }
    };
    let (begun, inserted, locked, read, payloads, now) = tokio::join!(
        biased;
        client.batch_execute(&opening),
        reserve_records,
        query_keys(client, &statements.lock_records, &to_lock),
        query_keys(client, &statements.read_records, &to_read),
        lock_payloads,
        query(client, &statements.now, &tenant_columns),
    );
    begun?;
    let mut reserved = ReservedRecords::new();
    for row in inserted? {
        let key = record_key(&row)?;
        let draft = match named.get(&key) {
            Some(IfMissing::Draft(content)) => Some(content.clone()),
            Some(IfMissing::Ignore | IfMissing::Reserve) | None => None,
        };
        reserved.insert(key, Reserved { version: count(&row, "version")?, draft });
    }
    let existing = query_keys(client, &statements.read_records, &existing_drafts(named, &reserved)).await?;
    let mut found = FoundRecords::new();
    for row in locked?.into_iter().chain(read?).chain(existing) {
        let key = record_key(&row)?;
        if !reserved.contains_key(&key) {
            found.insert(key, record(&row).map(|record| (record.version, record.content)));
        }
    }
    let mut swept: HashSet<PayloadId> = pending_payloads.iter().copied().collect();
    for row in payloads? {
        swept.remove(&payload_id(get(&row, "id")?)?);
    }
    let now = now?;
    let now = clock_row(&now)?;
    let elsewhere = get::<Vec<i64>>(now, "elsewhere")?.into_iter();
    let elsewhere =
        elsewhere.filter_map(|position| tenants.get(usize::try_from(position - 1).ok()?).cloned());
    Ok(Begun { found, reserved, swept, elsewhere: elsewhere.collect(), now: timestamp(now, "now")? })
}

/// What is read in the same round trip. A record that must be new hardly ever exists: reading it would find what was just
/// inserted.
fn may_exist(named: &NamedRecords) -> impl Iterator<Item = &RecordKey> {
    named.iter().filter(|(_, if_missing)| !matches!(if_missing, IfMissing::Draft(_))).map(|(key, _)| key)
}

/// The records that must be new and are not, which takes a round trip of its own.
fn existing_drafts<'n>(named: &'n NamedRecords, reserved: &ReservedRecords) -> Vec<&'n RecordKey> {
    let drafts = named.iter().filter(|(_, if_missing)| matches!(if_missing, IfMissing::Draft(_)));
    drafts.map(|(key, _)| key).filter(|key| !reserved.contains_key(*key)).collect()
}

/// Asks nothing without keys.
async fn query_keys(client: &Client, statement: &Statement, keys: &[&RecordKey]) -> Result<Vec<Row>, Error> {
    match keys.is_empty() {
        true => Ok(Vec::new()),
        false => query(client, statement, &columns::key_ref_columns(keys)).await,
    }
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
            Ok(rows) => match rows.iter().map(counter).collect::<Result<Vec<_>, _>>() {
                Ok(more) => counters.extend(more),
                Err(error) => {
                    tracing::error!(
                        error = error_chain(&error),
                        "the number of a delivery can't be decoded; the outcome of its batch is unknown"
                    );
                    return CommitResult::Unknown;
                }
            },
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

fn counter(row: &Row) -> Result<(MailboxName, u64), StoreError> {
    let tenant: &str = get(row, "tenant")?;
    let tenant = tenant.parse().map_err(StoreError::corrupt)?;
    Ok(((tenant, get(row, "name")?), count(row, "counter")?))
}
