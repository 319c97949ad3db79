//! Converts between the types of the port and SQLite's rows.

use std::str::FromStr;

use bytes::Bytes;
use countersign_core::store::{Delivery, Due, Key, Kind, Mailbox, PayloadId, Record};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use rusqlite::{Error, Row, types::Type};

/// SQLite's integers are signed; numbers and versions never reach the sign bit.
pub(crate) fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Big-endian, so that the index has the order of the ids.
pub(crate) fn payload_id_bytes(id: PayloadId) -> [u8; 16] {
    id.0.to_be_bytes()
}

/// Expects the columns `kind, id, version, content`.
pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let content: Vec<u8> = row.get(3)?;
    Ok(Record { key: key(row, 0)?, version: count(row, 2)?, content: Bytes::from(content) })
}

/// Expects the column `content`.
pub(crate) fn payload(row: &Row<'_>) -> rusqlite::Result<Bytes> {
    let bytes: Vec<u8> = row.get(0)?;
    Ok(Bytes::from(bytes))
}

/// Expects the columns `number, msg_id, msg_type, subject_kind, subject_id, payload, at, until`.
pub(crate) fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let payload: Option<[u8; 16]> = row.get(5)?;
    Ok(Delivery {
        number: count(row, 0)?,
        msg_id: parsed(row, 1, "is not a message id")?,
        msg_type: parsed(row, 2, "is not a message type")?,
        subject: key(row, 3)?,
        payload: payload.map(|id| PayloadId(u128::from_be_bytes(id))),
        at: timestamp(row, 6)?,
        until: timestamp(row, 7)?,
    })
}

/// Expects the columns of [`delivery`], then `mailbox`.
pub(crate) fn delivery_and_mailbox(row: &Row<'_>) -> rusqlite::Result<(Mailbox, Delivery)> {
    Ok((mailbox(row, 8)?, delivery(row)?))
}

/// Expects the columns `at, tenant, kind, id`.
pub(crate) fn due(row: &Row<'_>) -> rusqlite::Result<Due> {
    Ok(Due { at: timestamp(row, 0)?, tenant: tenant(row, 1)?, key: key(row, 2)? })
}

/// Expects the column `version`.
pub(crate) fn version(row: &Row<'_>) -> rusqlite::Result<u64> {
    count(row, 0)
}

/// Expects the column `counter`.
pub(crate) fn counter(row: &Row<'_>) -> rusqlite::Result<u64> {
    count(row, 0)
}

/// A kind, and the id in the column after it.
pub(crate) fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<Key> {
    let kind = Kind::from_number(row.get(column)?)
        .ok_or_else(|| undecodable(column, Type::Integer, "is not a kind"))?;
    Ok(Key { kind, id: row.get(column + 1)? })
}

pub(crate) fn tenant(row: &Row<'_>, column: usize) -> rusqlite::Result<TenantId> {
    parsed(row, column, "is not a tenant id")
}

pub(crate) fn mailbox(row: &Row<'_>, column: usize) -> rusqlite::Result<Mailbox> {
    parsed(row, column, "is not a mailbox")
}

pub(crate) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| undecodable(column, Type::Integer, "is negative"))
}

fn timestamp(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    Ok(Timestamp::from_unix_micros(row.get(column)?))
}

fn parsed<T: FromStr>(row: &Row<'_>, column: usize, reason: &'static str) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    text.parse().map_err(|_| undecodable(column, Type::Text, reason))
}

fn undecodable(column: usize, found: Type, reason: &'static str) -> Error {
    Error::FromSqlConversionFailure(column, found, reason.into())
}
