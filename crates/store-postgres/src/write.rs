//! The statements of a commit. Those of one transaction are sent together and answered together.

use std::collections::{HashMap, HashSet};

use countersign_core::store::PayloadId;
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use futures_util::future::join_all;
use tokio_postgres::{Client, Error, Row, Statement, types::ToSql};

use crate::{
    columns::{self, id_column, place_columns},
    plan::{Place, Rows, Writes},
    rows::{payload_id, record, to_u64},
};

/// Locks in the order of the key, so that no two transactions wait for each other. A lock is a write: it
/// makes the commit wait until what was read is on disk and, where there is a standby, there too.
pub(crate) const LOCK: &str = "SELECT r.tenant, r.kind, r.id, r.version, r.content \
    FROM unnest($1::text[], $2::smallint[], $3::text[]) AS k (tenant, kind, id) \
    JOIN record r ON r.tenant = k.tenant AND r.kind = k.kind AND r.id = k.id \
    ORDER BY r.tenant, r.kind, r.id FOR UPDATE OF r";
const NOW: &str = "SELECT gateway_now()";
const LOCK_AHEAD: &str = "SELECT id FROM payload_pending WHERE id = ANY($1) FOR UPDATE";
const INSERT_RECORDS: &str = "INSERT INTO record (tenant, kind, id, version, content) \
    SELECT * FROM unnest($1::text[], $2::smallint[], $3::text[], $4::bigint[], $5::bytea[])";
/// What is not there can't be locked; writing it and taking it back keeps others from writing it meanwhile.
const INSERT_GHOSTS: &str = "INSERT INTO record (tenant, kind, id, version, content) \
    SELECT tenant, kind, id, 0, '' FROM unnest($1::text[], $2::smallint[], $3::text[]) AS k (tenant, kind, id)";
pub(crate) const UPDATE_RECORDS: &str = "UPDATE record r SET version = k.version, content = k.content \
    FROM unnest($1::text[], $2::smallint[], $3::text[], $4::bigint[], $5::bytea[]) \
    AS k (tenant, kind, id, version, content) \
    WHERE r.tenant = k.tenant AND r.kind = k.kind AND r.id = k.id";
const DELETE_RECORDS: &str = "DELETE FROM record r \
    USING unnest($1::text[], $2::smallint[], $3::text[]) AS k (tenant, kind, id) \
    WHERE r.tenant = k.tenant AND r.kind = k.kind AND r.id = k.id";
const INSERT_PAYLOADS: &str =
    "INSERT INTO payload (tenant, id, content) SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[])";
const SETTLE_PAYLOADS: &str = "DELETE FROM payload_pending WHERE id = ANY($1)";
const DELETE_PAYLOADS: &str = "DELETE FROM payload p USING unnest($1::text[], $2::bytea[]) AS k (tenant, id) \
    WHERE p.id = k.id AND p.tenant = k.tenant";
const DELETE_DELIVERIES: &str = "WITH gone AS ( \
        DELETE FROM delivery d USING unnest($1::text[], $2::text[], $3::bigint[]) AS k (tenant, mailbox, number) \
        WHERE d.tenant = k.tenant AND d.mailbox = k.mailbox AND d.number = k.number \
        RETURNING d.tenant, d.mailbox, d.number) \
    DELETE FROM mark m USING gone \
    WHERE m.tenant = gone.tenant AND m.mailbox = gone.mailbox AND m.number = gone.number";
pub(crate) const DELETE_DELIVERIES_ABOUT: &str = "WITH gone AS ( \
        DELETE FROM delivery d \
        USING unnest($1::text[], $2::smallint[], $3::text[], $4::text[]) AS k (tenant, kind, id, msg_type) \
        WHERE d.tenant = k.tenant AND d.subject_id = k.id AND d.subject_kind = k.kind \
            AND (k.msg_type IS NULL OR d.msg_type = k.msg_type) \
        RETURNING d.tenant, d.mailbox, d.number) \
    DELETE FROM mark m USING gone \
    WHERE m.tenant = gone.tenant AND m.mailbox = gone.mailbox AND m.number = gone.number";
const UPSERT_MARKS: &str = "INSERT INTO mark (tenant, mailbox, number, reader, hidden, acknowledged) \
    SELECT k.* FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bool[], $6::bool[]) \
        AS k (tenant, mailbox, number, reader, hidden, acknowledged) \
    JOIN delivery d ON d.tenant = k.tenant AND d.mailbox = k.mailbox AND d.number = k.number \
    ON CONFLICT (tenant, mailbox, number, reader) DO UPDATE SET \
        hidden = mark.hidden OR excluded.hidden, acknowledged = mark.acknowledged OR excluded.acknowledged";
const INSERT_DUE: &str = "INSERT INTO due (at, tenant, kind, id) \
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::smallint[], $4::text[]) ON CONFLICT DO NOTHING";
const DELETE_DUE: &str = "DELETE FROM due d \
    USING unnest($1::bigint[], $2::text[], $3::smallint[], $4::text[]) AS k (at, tenant, kind, id) \
    WHERE d.at = k.at AND d.tenant = k.tenant AND d.kind = k.kind AND d.id = k.id";
const INSERT_AUDIT: &str = "INSERT INTO audit (tenant, at, subject_kind, subject_id, event) \
    SELECT tenant, $5::bigint, kind, id, event \
    FROM unnest($1::text[], $2::smallint[], $3::text[], $4::bytea[]) AS k (tenant, kind, id, event)";
/// Takes the counters last and in order, so that numbers are given in the order of commits.
pub(crate) const INSERT_DELIVERIES: &str = "WITH counted AS ( \
        INSERT INTO mailbox (tenant, name, counter) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) \
        ON CONFLICT (tenant, name) DO UPDATE SET counter = mailbox.counter + excluded.counter \
        RETURNING tenant, name, counter), \
    put AS ( \
        INSERT INTO delivery \
            (tenant, mailbox, number, msg_id, msg_type, subject_kind, subject_id, payload, at, until) \
        SELECT d.tenant, d.mailbox, counted.counter - d.from_last, d.msg_id, d.msg_type, d.kind, d.id, d.payload, \
            $13::bigint, d.until \
        FROM unnest($4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::smallint[], $10::text[], \
            $11::bytea[], $12::bigint[]) \
            AS d (tenant, mailbox, from_last, msg_id, msg_type, kind, id, payload, until) \
        JOIN counted ON counted.tenant = d.tenant AND counted.name = d.mailbox) \
    SELECT tenant, name, counter FROM counted";

/// The statements, prepared on one connection.
#[derive(Debug)]
pub(crate) struct Statements {
    lock: Statement,
    now: Statement,
    lock_ahead: Statement,
    pub(crate) insert_records: Statement,
    pub(crate) insert_ghosts: Statement,
    pub(crate) update_records: Statement,
    pub(crate) delete_records: Statement,
    pub(crate) insert_payloads: Statement,
    pub(crate) settle_payloads: Statement,
    pub(crate) delete_payloads: Statement,
    pub(crate) delete_deliveries: Statement,
    pub(crate) delete_deliveries_about: Statement,
    pub(crate) upsert_marks: Statement,
    pub(crate) insert_due: Statement,
    pub(crate) delete_due: Statement,
    pub(crate) insert_audit: Statement,
    pub(crate) insert_deliveries: Statement,
}

impl Statements {
    pub(crate) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            lock: client.prepare(LOCK).await?,
            now: client.prepare(NOW).await?,
            lock_ahead: client.prepare(LOCK_AHEAD).await?,
            insert_records: client.prepare(INSERT_RECORDS).await?,
            insert_ghosts: client.prepare(INSERT_GHOSTS).await?,
            update_records: client.prepare(UPDATE_RECORDS).await?,
            delete_records: client.prepare(DELETE_RECORDS).await?,
            insert_payloads: client.prepare(INSERT_PAYLOADS).await?,
            settle_payloads: client.prepare(SETTLE_PAYLOADS).await?,
            delete_payloads: client.prepare(DELETE_PAYLOADS).await?,
            delete_deliveries: client.prepare(DELETE_DELIVERIES).await?,
            delete_deliveries_about: client.prepare(DELETE_DELIVERIES_ABOUT).await?,
            upsert_marks: client.prepare(UPSERT_MARKS).await?,
            insert_due: client.prepare(INSERT_DUE).await?,
            delete_due: client.prepare(DELETE_DUE).await?,
            insert_audit: client.prepare(INSERT_AUDIT).await?,
            insert_deliveries: client.prepare(INSERT_DELIVERIES).await?,
        })
    }
}

/// The first trip: begins a transaction, locks what the batch names, and reads the clock after that.
pub(crate) async fn begin(
    client: &Client,
    statements: &Statements,
    places: &[Place],
    ahead: &[PayloadId],
) -> Result<(Rows, HashSet<PayloadId>, Timestamp), Error> {
    let places = place_columns(places);
    let places: Vec<&(dyn ToSql + Sync)> = places.iter().map(|column| &**column as _).collect();
    let ahead_ids = id_column(ahead);
    let lock_ahead = async {
        match ahead.is_empty() {
            true => Ok(Vec::new()),
            false => client.query(&statements.lock_ahead, &[&ahead_ids]).await,
        }
    };
    let (begun, locked, found_ahead, now) = tokio::join!(
        biased;
        client.batch_execute("BEGIN"),
        client.query(&statements.lock, &places),
        lock_ahead,
        client.query_one(&statements.now, &[]),
    );
    begun?;
    let mut rows = Rows::new();
    for row in locked? {
        let tenant: &str = row.try_get("tenant")?;
        if let (Ok(tenant), Ok(record)) = (tenant.parse::<TenantId>(), record(&row)) {
            rows.insert((tenant, record.key), (record.version, record.content));
        }
    }
    let mut swept: HashSet<PayloadId> = ahead.iter().copied().collect();
    for row in found_ahead? {
        let id: &[u8] = row.try_get(0)?;
        if let Ok(id) = payload_id(id) {
            swept.remove(&id);
        }
    }
    Ok((rows, swept, Timestamp::from_unix_micros(now?.try_get(0)?)))
}

/// The newest number of each mailbox.
pub(crate) type Counters = HashMap<(TenantId, String), u64>;

/// How the second trip ended.
pub(crate) enum Written {
    /// It is durable; these are the counters of the mailboxes after it.
    Committed(Counters),
    /// The server refused a statement, so nothing was written.
    Refused(Error),
    /// The connection broke, or the server was not sure.
    Unknown,
}

/// The second trip: writes everything and commits, in one go and in this order.
pub(crate) async fn write_and_commit(
    client: &Client,
    statements: &Statements,
    writes: &Writes,
    now: Timestamp,
) -> Written {
    let batch = columns::batch(statements, writes, now);
    let trips = batch.iter().map(|(statement, columns)| async move {
        let columns: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as _).collect();
        client.query(*statement, &columns).await
    });
    let (results, commit) = tokio::join!(biased; join_all(trips), client.batch_execute("COMMIT"));
    let mut counters = Counters::new();
    for result in results {
        match result {
            Ok(rows) => counters.extend(rows.iter().filter_map(counter)),
            // Once a statement was refused, COMMIT only ends the transaction.
            Err(error) if error.as_db_error().is_some() => return Written::Refused(error),
            Err(_) => return Written::Unknown,
        }
    }
    match commit {
        Ok(()) => Written::Committed(counters),
        Err(_) => Written::Unknown,
    }
}

fn counter(row: &Row) -> Option<((TenantId, String), u64)> {
    let tenant: &str = row.try_get("tenant").ok()?;
    let counter: i64 = row.try_get("counter").ok()?;
    Some(((tenant.parse().ok()?, row.try_get("name").ok()?), to_u64(counter)))
}
