//! Between the columns of the tables and the types of the port, and between the errors of both.

use std::str::FromStr;

use bytes::Bytes;
use countersign_core::store::{Delivery, Due, Key, Kind, Mailbox, PayloadId, Record, StoreError};
use countersign_wire::timestamp::Timestamp;
use rusqlite::{Error, ErrorCode, Row, types::Type};

/// A count as SQLite keeps it. It has no larger ones, and nobody will have counted as far.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A payload's id as SQLite keeps it: in the order of the ids.
pub(crate) fn payload_key(id: PayloadId) -> [u8; 16] {
    id.0.to_be_bytes()
}

/// `kind, id, version, content`
pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let content: Vec<u8> = row.get(3)?;
    Ok(Record { key: key(row, 0)?, version: count(row, 2)?, content: Bytes::from(content) })
}

/// `content`
pub(crate) fn payload(row: &Row<'_>) -> rusqlite::Result<Bytes> {
    let bytes: Vec<u8> = row.get(0)?;
    Ok(Bytes::from(bytes))
}

/// `number, msg_id, msg_type, subject_kind, subject_id, payload, at, until`
pub(crate) fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let payload: Option<[u8; 16]> = row.get(5)?;
    Ok(Delivery {
        number: count(row, 0)?,
        msg_id: parsed(row, 1, "is not a message id")?,
        msg_type: parsed(row, 2, "is not a message type")?,
        subject: key(row, 3)?,
        payload: payload.map(|id| PayloadId(u128::from_be_bytes(id))),
        at: time(row, 6)?,
        until: time(row, 7)?,
    })
}

/// A delivery, then `mailbox`
pub(crate) fn delivery_and_mailbox(row: &Row<'_>) -> rusqlite::Result<(Mailbox, Delivery)> {
    Ok((parsed(row, 8, "is not a mailbox")?, delivery(row)?))
}

/// `at, tenant, kind, id`
pub(crate) fn due(row: &Row<'_>) -> rusqlite::Result<Due> {
    Ok(Due { at: time(row, 0)?, tenant: parsed(row, 1, "is not a tenant id")?, key: key(row, 2)? })
}

/// The `counter` of a mailbox.
pub(crate) fn counter(row: &Row<'_>) -> rusqlite::Result<u64> {
    count(row, 0)
}

/// A kind, and the id in the column after it.
fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<Key> {
    let kind = Kind::from_number(row.get(column)?)
        .ok_or_else(|| unreadable(column, Type::Integer, "is not a kind"))?;
    Ok(Key { kind, id: row.get(column + 1)? })
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| unreadable(column, Type::Integer, "is below zero"))
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    Ok(Timestamp::from_unix_micros(row.get(column)?))
}

fn parsed<T: FromStr>(row: &Row<'_>, column: usize, fault: &'static str) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    text.parse().map_err(|_| unreadable(column, Type::Text, fault))
}

fn unreadable(column: usize, found: Type, fault: &'static str) -> Error {
    Error::FromSqlConversionFailure(column, found, fault.into())
}

/// What the port says to an error that left nothing written.
pub(crate) fn store_error(error: &Error) -> StoreError {
    if let Error::FromSqlConversionFailure(..)
    | Error::IntegralValueOutOfRange(..)
    | Error::InvalidColumnType(..)
    | Error::Utf8Error(..) = error
    {
        return StoreError::corrupt(error.to_string());
    }
    match error.sqlite_error_code() {
        // Another process has been writing for longer than the timeout.
        Some(ErrorCode::DatabaseBusy) => StoreError::Overloaded,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::corrupt(error.to_string()),
        _ => StoreError::unavailable(error.to_string()),
    }
}
