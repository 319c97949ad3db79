//! What a change does to mailboxes: removes deliveries, marks them, adds new ones.

use countersign_core::store::{Delivery, Key, Mailbox, Mark, MarkKind, NewDelivery, Removal};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use rusqlite::{Connection, Result, params};

use crate::{reads, rows};

pub(crate) fn remove(conn: &Connection, tenant: &TenantId, removals: &[Removal]) -> Result<()> {
    for removal in removals {
        match removal {
            Removal::ByNumber { mailbox, number } => remove_one(conn, tenant, mailbox, *number)?,
            Removal::BySubject { subject, msg_types } => remove_about(conn, tenant, subject, |delivery| {
                msg_types.is_empty() || msg_types.contains(&delivery.msg_type)
            })?,
            Removal::ByMessage { subject, msg_id } => {
                remove_about(conn, tenant, subject, |delivery| delivery.msg_id == *msg_id)?;
            }
        }
    }
    Ok(())
}

fn remove_about(
    conn: &Connection,
    tenant: &TenantId,
    subject: &Key,
    is_named: impl Fn(&Delivery) -> bool,
) -> Result<()> {
    for (mailbox, delivery) in reads::deliveries_by_subject(conn, tenant, &subject.id)? {
        if delivery.subject == *subject && is_named(&delivery) {
            remove_one(conn, tenant, &mailbox, delivery.number)?;
        }
    }
    Ok(())
}

fn remove_one(conn: &Connection, tenant: &TenantId, mailbox: &Mailbox, number: u64) -> Result<()> {
    let (mailbox, number) = (mailbox.to_string(), rows::to_i64(number));
    let key = params![tenant.as_str(), mailbox, number];
    conn.prepare_cached("DELETE FROM delivery WHERE tenant = ?1 AND mailbox = ?2 AND number = ?3")?
        .execute(key)?;
    conn.prepare_cached("DELETE FROM mark WHERE tenant = ?1 AND mailbox = ?2 AND number = ?3")?
        .execute(key)?;
    Ok(())
}

pub(crate) fn mark(conn: &Connection, tenant: &TenantId, marks: &[Mark]) -> Result<()> {
    for mark in marks {
        conn.prepare_cached(
            "INSERT INTO mark (tenant, mailbox, number, reader, hidden, acknowledged) SELECT ?1, ?2, ?3, ?4, ?5, ?6
             WHERE EXISTS (SELECT 1 FROM delivery WHERE tenant = ?1 AND mailbox = ?2 AND number = ?3)
             ON CONFLICT DO UPDATE SET
                 hidden = hidden OR excluded.hidden, acknowledged = acknowledged OR excluded.acknowledged",
        )?
        .execute(params![
            tenant.as_str(),
            mark.mailbox.to_string(),
            rows::to_i64(mark.number),
            mark.reader.as_str(),
            mark.kind == MarkKind::Hidden,
            mark.kind == MarkKind::Acknowledged,
        ])?;
    }
    Ok(())
}

/// Returns the numbers of the deliveries, in their order.
pub(crate) fn deliver(
    conn: &Connection,
    tenant: &TenantId,
    deliveries: &[NewDelivery],
    now: Timestamp,
) -> Result<Vec<u64>> {
    deliveries.iter().map(|delivery| deliver_one(conn, tenant, delivery, now)).collect()
}

fn deliver_one(conn: &Connection, tenant: &TenantId, delivery: &NewDelivery, now: Timestamp) -> Result<u64> {
    let mailbox = delivery.mailbox.to_string();
    let number = conn
        .prepare_cached(
            "INSERT INTO mailbox (tenant, name, counter) VALUES (?1, ?2, 1)
             ON CONFLICT DO UPDATE SET counter = counter + 1 RETURNING counter",
        )?
        .query_row(params![tenant.as_str(), mailbox], rows::counter)?;
    conn.prepare_cached(
        "INSERT INTO delivery
             (tenant, mailbox, number, msg_id, msg_type, subject_kind, subject_id, payload, at, until)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        tenant.as_str(),
        mailbox,
        rows::to_i64(number),
        delivery.msg_id.as_str(),
        delivery.msg_type.as_str(),
        delivery.subject.kind.number(),
        delivery.subject.id,
        delivery.payload.map(rows::payload_id_bytes),
        now.unix_micros(),
        delivery.until.unix_micros(),
    ])?;
    Ok(number)
}
