//! The SQL of a commit. Each statement takes one array per column, so that it writes all rows of a batch at once.

use tokio_postgres::{Client, Error, Statement};

/// Locks in key order, so that transactions can't deadlock. A row lock is a write: it makes the commit wait until
/// what was read is durable, on the standby too if there is one.
pub(crate) const LOCK_RECORDS: &str = "SELECT r.tenant, r.kind, r.id, r.version, r.content \
    FROM unnest($1::text[], $2::smallint[], $3::text[]) AS k (tenant, kind, id) \
    JOIN record r ON r.tenant = k.tenant AND r.kind = k.kind AND r.id = k.id \
    ORDER BY r.tenant, r.kind, r.id FOR UPDATE OF r";
/// Inserts the records that do not exist and locks the others, in one pass in the order of the keys, so that
/// transactions can't deadlock. Where another transaction inserts the same record it waits for that one's end. Returns
/// what it inserted; [`READ_RECORDS`] reads the rest.
///
/// The sequence stays ahead of all versions (see [`USE_INCARNATIONS`]), so that a record never gets a version that an earlier
/// one of the same key had. It has no cache: a session that takes numbers in advance would use them late.
pub(crate) const RESERVE_RECORDS: &str = "INSERT INTO record (tenant, kind, id, version, content) \
    SELECT k.tenant, k.kind, k.id, nextval('record_incarnation') << $5::integer, k.content \
    FROM unnest($1::text[], $2::smallint[], $3::text[], $4::bytea[]) AS k (tenant, kind, id, content) \
    ON CONFLICT (tenant, kind, id) DO UPDATE SET version = record.version WHERE false \
    RETURNING tenant, kind, id, version";
/// A statement of its own after [`RESERVE_RECORDS`]: only a later snapshot shows what that one has waited for.
pub(crate) const READ_RECORDS: &str = "SELECT r.tenant, r.kind, r.id, r.version, r.content \
    FROM unnest($1::text[], $2::smallint[], $3::text[]) AS k (tenant, kind, id) CROSS JOIN LATERAL \
    (SELECT * FROM record r WHERE r.tenant = k.tenant AND r.kind = k.kind AND r.id = k.id LIMIT 1) r";
/// Advances the sequence once for each version that has grown into the next incarnation. Returns nothing.
pub(crate) const USE_INCARNATIONS: &str =
    "SELECT 1 FROM generate_series(1, $1::bigint) WHERE nextval('record_incarnation') < 0";
/// The clock, and which of these tenants are not here with the epoch that they are taken to have, by their positions. A
/// statement of its own after the lock of [`crate::residences::lock_shared`]: only a later snapshot shows what that one has
/// waited for.
pub(crate) const NOW: &str = "SELECT gateway_now() AS now, ARRAY( \
    SELECT k.position FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS k (tenant, epoch, position) \
    LEFT JOIN LATERAL (SELECT r.epoch, r.state FROM residence r WHERE r.tenant = k.tenant LIMIT 1) r ON true \
    WHERE CASE WHEN r.epoch IS NULL THEN k.epoch <> 0 ELSE r.state <> 1 OR r.epoch <> k.epoch END) AS elsewhere";
pub(crate) const LOCK_PENDING_PAYLOADS: &str = "SELECT id FROM payload_pending WHERE id = ANY($1) FOR UPDATE";
pub(crate) const UPDATE_RECORDS: &str = "UPDATE record r SET version = k.version, content = k.content \
    FROM unnest($1::text[], $2::smallint[], $3::text[], $4::bigint[], $5::bytea[]) \
    AS k (tenant, kind, id, version, content) \
    WHERE r.tenant = k.tenant AND r.kind = k.kind AND r.id = k.id";
pub(crate) const DELETE_RECORDS: &str = "DELETE FROM record r \
    USING unnest($1::text[], $2::smallint[], $3::text[]) AS k (tenant, kind, id) \
    WHERE r.tenant = k.tenant AND r.kind = k.kind AND r.id = k.id";
pub(crate) const INSERT_PAYLOADS: &str =
    "INSERT INTO payload (tenant, id, content) SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[])";
pub(crate) const CONFIRM_PAYLOADS: &str = "DELETE FROM payload_pending WHERE id = ANY($1)";
pub(crate) const DELETE_PAYLOADS: &str = "DELETE FROM payload p USING unnest($1::text[], $2::bytea[]) AS k (tenant, id) \
    WHERE p.id = k.id AND p.tenant = k.tenant";
pub(crate) const DELETE_DELIVERIES: &str = "DELETE FROM delivery d \
    USING unnest($1::text[], $2::text[], $3::bigint[]) AS k (tenant, mailbox, number) \
    WHERE d.tenant = k.tenant AND d.mailbox = k.mailbox AND d.number = k.number";
/// A statement of its own after [`DELETE_DELIVERIES`]: only a later snapshot shows the marks of a transaction that that one
/// has waited for, because it held the delivery ([`UPSERT_MARKS`]).
pub(crate) const DELETE_MARKS: &str = "DELETE FROM mark m \
    USING unnest($1::text[], $2::text[], $3::bigint[]) AS k (tenant, mailbox, number) \
    WHERE m.tenant = k.tenant AND m.mailbox = k.mailbox AND m.number = k.number";
pub(crate) const DELETE_DELIVERIES_BY_SUBJECT: &str = "WITH deleted AS ( \
        DELETE FROM delivery d \
        USING unnest($1::text[], $2::smallint[], $3::text[], $4::text[], $5::text[]) AS k (tenant, kind, id, msg_type, msg_id) \
        WHERE d.tenant = k.tenant AND d.subject_id = k.id AND d.subject_kind = k.kind \
            AND (k.msg_type IS NULL OR d.msg_type = k.msg_type) AND (k.msg_id IS NULL OR d.msg_id = k.msg_id) \
        RETURNING d.tenant, d.mailbox, d.number) \
    DELETE FROM mark m USING deleted \
    WHERE m.tenant = deleted.tenant AND m.mailbox = deleted.mailbox AND m.number = deleted.number";
/// Holds the deliveries until the end of the transaction, so that nobody removes one and does not see its new mark.
pub(crate) const UPSERT_MARKS: &str = "INSERT INTO mark (tenant, mailbox, number, reader, hidden, acknowledged) \
    SELECT h.* FROM ( \
        SELECT k.* FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bool[], $6::bool[]) \
            AS k (tenant, mailbox, number, reader, hidden, acknowledged) \
        JOIN delivery d ON d.tenant = k.tenant AND d.mailbox = k.mailbox AND d.number = k.number \
        FOR KEY SHARE OF d) h \
    ON CONFLICT (tenant, mailbox, number, reader) DO UPDATE SET \
        hidden = mark.hidden OR excluded.hidden, acknowledged = mark.acknowledged OR excluded.acknowledged";
pub(crate) const UPSERT_DUE: &str = "INSERT INTO due (tenant, kind, id, at) \
    SELECT * FROM unnest($1::text[], $2::smallint[], $3::text[], $4::bigint[]) \
    ON CONFLICT (tenant, kind, id) DO UPDATE SET at = excluded.at WHERE due.at <> excluded.at";
pub(crate) const DELETE_DUE: &str = "DELETE FROM due d \
    USING unnest($1::text[], $2::smallint[], $3::text[]) AS k (tenant, kind, id) \
    WHERE d.tenant = k.tenant AND d.kind = k.kind AND d.id = k.id";
pub(crate) const INSERT_AUDIT: &str = "INSERT INTO audit (tenant, at, subject_kind, subject_id, event) \
    SELECT tenant, $5::bigint, kind, id, event \
    FROM unnest($1::text[], $2::smallint[], $3::text[], $4::bytea[]) AS k (tenant, kind, id, event)";
/// Runs last and locks the counters in order, so that numbers are assigned in commit order. A counter that is negative,
/// which it never is unless somebody has damaged it, becomes NULL, which the table refuses: the change fails.
pub(crate) const INSERT_DELIVERIES: &str = "WITH counted AS ( \
        INSERT INTO mailbox (tenant, name, counter) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) \
        ON CONFLICT (tenant, name) DO UPDATE \
            SET counter = CASE WHEN mailbox.counter >= 0 THEN mailbox.counter + excluded.counter END \
        RETURNING tenant, name, counter), \
    inserted AS ( \
        INSERT INTO delivery \
            (tenant, mailbox, number, msg_id, msg_type, subject_kind, subject_id, payload, at, until) \
        SELECT d.tenant, d.mailbox, counted.counter - d.from_last, d.msg_id, d.msg_type, d.kind, d.id, d.payload, \
            $13::bigint, d.until \
        FROM unnest($4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::smallint[], $10::text[], \
            $11::bytea[], $12::bigint[]) \
            AS d (tenant, mailbox, from_last, msg_id, msg_type, kind, id, payload, until) \
        JOIN counted ON counted.tenant = d.tenant AND counted.name = d.mailbox) \
    SELECT tenant, name, counter FROM counted";

/// Prepared on one connection.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) lock_records: Statement,
    pub(crate) reserve_records: Statement,
    pub(crate) read_records: Statement,
    pub(crate) use_incarnations: Statement,
    pub(crate) now: Statement,
    pub(crate) lock_pending_payloads: Statement,
    pub(crate) update_records: Statement,
    pub(crate) delete_records: Statement,
    pub(crate) insert_payloads: Statement,
    pub(crate) confirm_payloads: Statement,
    pub(crate) delete_payloads: Statement,
    pub(crate) delete_deliveries: Statement,
    pub(crate) delete_marks: Statement,
    pub(crate) delete_deliveries_by_subject: Statement,
    pub(crate) upsert_marks: Statement,
    pub(crate) upsert_due: Statement,
    pub(crate) delete_due: Statement,
    pub(crate) insert_audit: Statement,
    pub(crate) insert_deliveries: Statement,
}

impl Statements {
    pub(crate) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            lock_records: client.prepare(LOCK_RECORDS).await?,
            reserve_records: client.prepare(RESERVE_RECORDS).await?,
            read_records: client.prepare(READ_RECORDS).await?,
            use_incarnations: client.prepare(USE_INCARNATIONS).await?,
            now: client.prepare(NOW).await?,
            lock_pending_payloads: client.prepare(LOCK_PENDING_PAYLOADS).await?,
            update_records: client.prepare(UPDATE_RECORDS).await?,
            delete_records: client.prepare(DELETE_RECORDS).await?,
            insert_payloads: client.prepare(INSERT_PAYLOADS).await?,
            confirm_payloads: client.prepare(CONFIRM_PAYLOADS).await?,
            delete_payloads: client.prepare(DELETE_PAYLOADS).await?,
            delete_deliveries: client.prepare(DELETE_DELIVERIES).await?,
            delete_marks: client.prepare(DELETE_MARKS).await?,
            delete_deliveries_by_subject: client.prepare(DELETE_DELIVERIES_BY_SUBJECT).await?,
            upsert_marks: client.prepare(UPSERT_MARKS).await?,
            upsert_due: client.prepare(UPSERT_DUE).await?,
            delete_due: client.prepare(DELETE_DUE).await?,
            insert_audit: client.prepare(INSERT_AUDIT).await?,
            insert_deliveries: client.prepare(INSERT_DELIVERIES).await?,
        })
    }
}
