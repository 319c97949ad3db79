//! Tenants as a whole: which there are, what they take, and their end.

use countersign_core::store::{InInboxes, Kind, StoreError};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Result, Row, TransactionBehavior, params};

use crate::{error::store_error, rows};

/// Goes from one tenant to the next by the key of the records, however many each has.
pub(crate) fn list(conn: &Connection, after: Option<&str>, limit: u32) -> Result<Vec<TenantId>> {
    let mut next = conn.prepare_cached(include_str!("../queries/tenants.sql"))?;
    let mut last = after.unwrap_or_default().to_owned();
    let mut tenants = Vec::new();
    while tenants.len() < limit as usize {
        let Some(tenant) = next.query_row([&last], |row| rows::tenant(row, 0)).optional()? else { break };
        tenant.as_str().clone_into(&mut last);
        tenants.push(tenant);
    }
    Ok(tenants)
}

/// Reads the names of all mailboxes, and then only what lies in the inboxes among them.
const IN_INBOXES: &str = "SELECT count(*), min(oldest) FROM (
        SELECT min(at) AS oldest FROM (
            SELECT d.tenant, d.subject_kind, d.subject_id, d.at
            FROM mailbox AS m CROSS JOIN delivery AS d ON d.tenant = m.tenant AND d.mailbox = m.name
            WHERE m.name = 's' OR (m.name >= 'a:' AND m.name < 'a;')
            LIMIT ?1)
        GROUP BY tenant, subject_kind, subject_id)";

pub(crate) fn in_inboxes(conn: &Connection, limit: u32) -> Result<InInboxes> {
    let found = |row: &Row<'_>| {
        let oldest: Option<i64> = row.get(1)?;
        Ok(InInboxes { records: rows::count(row, 0)?, oldest: oldest.map(Timestamp::from_unix_micros) })
    };
    conn.prepare_cached(IN_INBOXES)?.query_row([limit], found)
}

pub(crate) fn stored_bytes(conn: &Connection, tenant: &TenantId) -> Result<u64> {
    let bytes = conn
        .prepare_cached(include_str!("../queries/stored_bytes.sql"))?
        .query_row([tenant.as_str()], rows::counter)
        .optional()?;
    Ok(bytes.unwrap_or(0))
}

/// From every table; `noted` forgets by itself, and the record of the tenant is deleted last, by a commit.
const ERASE: &[&str] = &[
    "DELETE FROM record WHERE (tenant, kind, id) IN
        (SELECT tenant, kind, id FROM record WHERE tenant = ?1 AND kind <> ?3 LIMIT ?2)",
    "DELETE FROM due WHERE (tenant, kind, id) IN
        (SELECT tenant, kind, id FROM due WHERE tenant = ?1 AND kind <> ?3 LIMIT ?2)",
    "DELETE FROM payload WHERE id IN (SELECT id FROM payload WHERE tenant = ?1 AND ?3 LIMIT ?2)",
    "DELETE FROM mark WHERE (tenant, mailbox, number, reader) IN
        (SELECT tenant, mailbox, number, reader FROM mark WHERE tenant = ?1 AND ?3 LIMIT ?2)",
    "DELETE FROM delivery WHERE (tenant, mailbox, number) IN
        (SELECT tenant, mailbox, number FROM delivery WHERE tenant = ?1 AND ?3 LIMIT ?2)",
    "DELETE FROM mailbox WHERE (tenant, name) IN
        (SELECT tenant, name FROM mailbox WHERE tenant = ?1 AND ?3 LIMIT ?2)",
    "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE tenant = ?1 AND ?3 LIMIT ?2)",
    "DELETE FROM stored WHERE tenant = ?1 AND bytes <= 0 AND ?2 AND ?3",
];

/// Deletes up to `limit` rows of the tenant from each table; says how many.
pub(crate) fn erase(conn: &mut Connection, tenant: &TenantId, limit: u32) -> Result<u64, StoreError> {
    let erase = |conn: &mut Connection| {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut erased = 0;
        for sql in ERASE {
            let count =
                tx.prepare_cached(sql)?.execute(params![tenant.as_str(), limit, Kind::Tenant.number()])?;
            erased += count as u64;
        }
        tx.commit()?;
        Ok(erased)
    };
    erase(conn).map_err(store_error)
}
