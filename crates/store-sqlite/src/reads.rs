//! The reads, one function each. The SQL is in `queries/`, so that a test can check the plan of every file.

use bytes::Bytes;
use countersign_core::store::{
    Delivery, DeliveryPage, DeliveryQuery, Key, Kind, MAX_SCANNED, Mailbox, MailboxKey, MarkKind, PayloadId,
    Record,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use rusqlite::{Connection, OptionalExtension, Params, Result, Row, params};

use crate::rows;

pub(crate) fn record(conn: &Connection, tenant: &TenantId, key: &Key) -> Result<Option<Record>> {
    conn.prepare_cached(include_str!("../queries/load.sql"))?
        .query_row(params![tenant.as_str(), key.kind.number(), key.id], rows::record)
        .optional()
}

pub(crate) fn scan(
    conn: &Connection,
    tenant: &TenantId,
    kind: Kind,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<Record>> {
    let (tenant, kind) = (tenant.as_str(), kind.number());
    match after {
        Some(after) => {
            let sql = include_str!("../queries/scan_after.sql");
            all(conn, sql, params![tenant, kind, after, limit], rows::record)
        }
        None => all(conn, include_str!("../queries/scan.sql"), params![tenant, kind, limit], rows::record),
    }
}

pub(crate) fn payload(conn: &Connection, tenant: &TenantId, id: PayloadId) -> Result<Option<Bytes>> {
    conn.prepare_cached(include_str!("../queries/payload.sql"))?
        .query_row(params![rows::payload_id_bytes(id), tenant.as_str()], rows::payload)
        .optional()
}

/// Stops at the limit or after [`MAX_SCANNED`] rows, whichever comes first.
pub(crate) fn deliveries(
    conn: &Connection,
    tenant: &TenantId,
    query: &DeliveryQuery,
    now: Timestamp,
) -> Result<DeliveryPage> {
    let until_after = if query.only_relevant { now.unix_micros() } else { i64::MIN };
    // Without a reader no mark matches, because nothing equals NULL.
    let reader = query.unless_marked.as_ref().map(|(reader, _)| reader.as_str());
    let hidden = query.unless_marked.as_ref().map(|(_, mark)| *mark == MarkKind::Hidden);
    let (mailbox, up_to) = (query.mailbox.to_string(), query.up_to.map_or(i64::MAX, rows::to_i64));
    let mut statement = conn.prepare_cached(include_str!("../queries/deliveries.sql"))?;
    let mut scanning = statement.query(params![
        tenant.as_str(),
        mailbox,
        rows::to_i64(query.after),
        until_after,
        reader,
        hidden,
        up_to,
        MAX_SCANNED,
    ])?;
    let (mut found, mut scanned, mut last) = (Vec::new(), 0, query.after);
    while found.len() < query.limit as usize {
        let Some(row) = scanning.next()? else { break };
        let delivery = rows::delivery(row)?;
        (scanned, last) = (scanned + 1, delivery.number);
        if row.get("is_wanted")? {
            found.push(delivery);
        }
    }
    let head = head(conn, &MailboxKey { tenant: tenant.clone(), mailbox: query.mailbox.clone() })?;
    Ok(DeliveryPage::new(query, found, (scanned == MAX_SCANNED).then_some(last), head, now))
}

pub(crate) fn deliveries_by_subject(
    conn: &Connection,
    tenant: &TenantId,
    subject: &str,
) -> Result<Vec<(Mailbox, Delivery)>> {
    let sql = include_str!("../queries/deliveries_by_subject.sql");
    all(conn, sql, params![tenant.as_str(), subject], rows::delivery_and_mailbox)
}

pub(crate) fn head(conn: &Connection, mailbox: &MailboxKey) -> Result<u64> {
    let newest = conn
        .prepare_cached(include_str!("../queries/head.sql"))?
        .query_row(params![mailbox.tenant.as_str(), mailbox.mailbox.to_string()], rows::counter)
        .optional()?;
    Ok(newest.unwrap_or(0))
}

pub(crate) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map(params, read)?.collect()
}
