//! Writes one change, within a transaction that the caller ends.

use countersign_core::store::{Change, Guard, Key, Outcome, Put, Record};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Result, params};

use crate::{mailboxes, reads, rows};

/// Writes `change` if all of its guards are satisfied.
pub(crate) fn commit(conn: &Connection, change: &Change, now: Timestamp) -> Result<Outcome> {
    if let Some(current) = conflict(conn, change, now)? {
        return Ok(Outcome::Conflict { current, now });
    }
    let versions = write_records(conn, change)?;
    write_payloads(conn, change)?;
    mailboxes::remove(conn, &change.tenant, &change.removals)?;
    mailboxes::mark(conn, &change.tenant, &change.marks)?;
    let numbers = mailboxes::deliver(conn, &change.tenant, &change.deliveries, now)?;
    write_due(conn, change)?;
    write_audit(conn, change, now)?;
    Ok(Outcome::Committed { now, numbers, versions })
}

/// The records that the guards name, if one of the guards is not satisfied.
fn conflict(conn: &Connection, change: &Change, now: Timestamp) -> Result<Option<Vec<Option<Record>>>> {
    let mut current = Vec::new();
    let mut all_satisfied = true;
    for guard in &change.guards {
        let record = match guard.key() {
            Some(key) => reads::record(conn, &change.tenant, key)?,
            None => None,
        };
        all_satisfied &= match guard {
            Guard::Absent(_) => record.is_none(),
            Guard::Version(_, version) => record.as_ref().is_some_and(|record| record.version == *version),
            Guard::Seen(_, version) => record.as_ref().map_or(0, |record| record.version) == *version,
            Guard::Before(end) => now < *end,
            Guard::NotBefore(earliest) => now >= *earliest,
        };
        if guard.key().is_some() {
            current.push(record);
        }
    }
    Ok(if all_satisfied { None } else { Some(current) })
}

/// Returns the versions of the puts, in their order.
fn write_records(conn: &Connection, change: &Change) -> Result<Vec<u64>> {
    change.deletes.iter().try_for_each(|key| delete_record(conn, &change.tenant, key))?;
    let put = |Put { key, content }: &Put| {
        conn.prepare_cached(
            "INSERT INTO record (tenant, kind, id, version, content)
             VALUES (?1, ?2, ?3, (SELECT highest + 1 FROM deleted_version), ?4)
             ON CONFLICT DO UPDATE SET version = version + 1, content = excluded.content RETURNING version",
        )?
        .query_row(
            params![change.tenant.as_str(), key.kind.number(), key.id, content.as_ref()],
            rows::version,
        )
    };
    change.puts.iter().map(put).collect()
}

fn delete_record(conn: &Connection, tenant: &TenantId, key: &Key) -> Result<()> {
    let deleted: Option<i64> = conn
        .prepare_cached("DELETE FROM record WHERE tenant = ?1 AND kind = ?2 AND id = ?3 RETURNING version")?
        .query_row(params![tenant.as_str(), key.kind.number(), key.id], |row| row.get(0))
        .optional()?;
    if let Some(version) = deleted {
        conn.prepare_cached("UPDATE deleted_version SET highest = ?1 WHERE highest < ?1")?
            .execute(params![version])?;
    }
    Ok(())
}

/// Large payloads too: there is only one writer, so writing them separately would delay the other changes as much.
fn write_payloads(conn: &Connection, change: &Change) -> Result<()> {
    let tenant = change.tenant.as_str();
    for (id, bytes) in &change.payloads {
        conn.prepare_cached("INSERT INTO payload (id, tenant, content) VALUES (?1, ?2, ?3)")?
            .execute(params![rows::payload_id_bytes(*id), tenant, bytes.as_ref()])?;
    }
    for id in &change.drop_payloads {
        conn.prepare_cached("DELETE FROM payload WHERE id = ?1 AND tenant = ?2")?
            .execute(params![rows::payload_id_bytes(*id), tenant])?;
    }
    Ok(())
}

/// Deletes first: a record that is due again is due.
fn write_due(conn: &Connection, change: &Change) -> Result<()> {
    let tenant = change.tenant.as_str();
    for key in &change.no_longer_due {
        conn.prepare_cached("DELETE FROM due WHERE tenant = ?1 AND kind = ?2 AND id = ?3")?
            .execute(params![tenant, key.kind.number(), key.id])?;
    }
    for (at, key) in &change.due {
        conn.prepare_cached(
            "INSERT INTO due (tenant, kind, id, at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET at = excluded.at",
        )?
        .execute(params![tenant, key.kind.number(), key.id, at.unix_micros()])?;
    }
    Ok(())
}

fn write_audit(conn: &Connection, change: &Change, now: Timestamp) -> Result<()> {
    for row in &change.audit {
        conn.prepare_cached(
            "INSERT INTO audit (tenant, at, subject_kind, subject_id, event) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            change.tenant.as_str(),
            now.unix_micros(),
            row.subject.kind.number(),
            row.subject.id,
            row.event.as_ref(),
        ])?;
    }
    Ok(())
}
