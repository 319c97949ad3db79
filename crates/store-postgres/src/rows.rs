//! Converts between the types of the port and PostgreSQL's rows.

use bytes::Bytes;
use countersign_core::store::{Delivery, Due, Key, Kind, Mailbox, PayloadId, Record, StoreError};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use tokio_postgres::{Row, types::FromSql};

/// PostgreSQL's integers are signed; numbers and versions never reach the sign bit.
pub(crate) fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A value that can't be decoded is [`StoreError::Corrupt`].
pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: &str) -> Result<T, StoreError> {
    row.try_get(column).map_err(StoreError::corrupt)
}

/// A number or version; a negative one is [`StoreError::Corrupt`].
pub(crate) fn count(row: &Row, column: &str) -> Result<u64, StoreError> {
    let number: i64 = get(row, column)?;
    u64::try_from(number).map_err(|_| StoreError::corrupt(format!("{column} is negative")))
}

pub(crate) fn timestamp(row: &Row, column: &str) -> Result<Timestamp, StoreError> {
    Ok(Timestamp::from_unix_micros(get(row, column)?))
}

fn key(row: &Row, kind: &str, id: &str) -> Result<Key, StoreError> {
    let number: i16 = get(row, kind)?;
    let kind = Kind::from_number(number)
        .ok_or_else(|| StoreError::corrupt(format!("unknown record kind {number}")))?;
    Ok(Key { kind, id: get(row, id)? })
}

/// The record's tenant and key.
pub(crate) fn record_key(row: &Row) -> Result<(TenantId, Key), StoreError> {
    let tenant: &str = get(row, "tenant")?;
    Ok((tenant.parse().map_err(StoreError::corrupt)?, key(row, "kind", "id")?))
}

pub(crate) fn record(row: &Row) -> Result<Record, StoreError> {
    let content: Vec<u8> = get(row, "content")?;
    Ok(Record {
        key: key(row, "kind", "id")?,
        version: count(row, "version")?,
        content: Bytes::from(content),
    })
}

pub(crate) fn delivery(row: &Row) -> Result<Delivery, StoreError> {
    let msg_id: &str = get(row, "msg_id")?;
    let msg_type: &str = get(row, "msg_type")?;
    Ok(Delivery {
        number: count(row, "number")?,
        msg_id: msg_id.parse().map_err(StoreError::corrupt)?,
        msg_type: msg_type.parse().map_err(StoreError::corrupt)?,
        subject: key(row, "subject_kind", "subject_id")?,
        payload: get::<Option<&[u8]>>(row, "payload")?.map(payload_id).transpose()?,
        at: timestamp(row, "at")?,
        until: timestamp(row, "until")?,
    })
}

pub(crate) fn delivery_and_mailbox(row: &Row) -> Result<(Mailbox, Delivery), StoreError> {
    let mailbox: &str = get(row, "mailbox")?;
    Ok((mailbox.parse().map_err(StoreError::corrupt)?, delivery(row)?))
}

pub(crate) fn due(row: &Row) -> Result<Due, StoreError> {
    let (tenant, key) = record_key(row)?;
    Ok(Due { tenant, at: timestamp(row, "at")?, key })
}

pub(crate) fn payload_id(bytes: &[u8]) -> Result<PayloadId, StoreError> {
    let bytes = bytes.try_into().map_err(|_| StoreError::corrupt("payload id is not 16 bytes long"))?;
    Ok(PayloadId(u128::from_be_bytes(bytes)))
}

/// Big-endian, so that the index has the order of the ids.
pub(crate) fn payload_id_bytes(id: PayloadId) -> [u8; 16] {
    id.0.to_be_bytes()
}

/// The ids as one array parameter.
pub(crate) fn payload_id_column(ids: &[PayloadId]) -> Vec<Vec<u8>> {
    ids.iter().map(|id| payload_id_bytes(*id).to_vec()).collect()
}
