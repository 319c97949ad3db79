//! Between our types and PostgreSQL's.

use bytes::Bytes;
use countersign_core::store::{Delivery, Key, Kind, PayloadId, Record, StoreError};
use countersign_wire::{msg_type::MsgType, timestamp::Timestamp};
use tokio_postgres::Row;

/// PostgreSQL's integers are signed; numbers and versions never come near the sign.
pub(crate) fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn to_u64(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

pub(crate) fn timestamp(row: &Row, column: &str) -> Result<Timestamp, StoreError> {
    Ok(Timestamp::from_unix_micros(get(row, column)?))
}

pub(crate) fn get<'r, T: tokio_postgres::types::FromSql<'r>>(
    row: &'r Row,
    column: &str,
) -> Result<T, StoreError> {
    row.try_get(column).map_err(|error| StoreError::corrupt(error.to_string()))
}

pub(crate) fn key(row: &Row, kind: &str, id: &str) -> Result<Key, StoreError> {
    let number: i16 = get(row, kind)?;
    let kind =
        Kind::from_number(number).ok_or_else(|| StoreError::corrupt(format!("no record kind {number}")))?;
    Ok(Key { kind, id: get(row, id)? })
}

pub(crate) fn record(row: &Row) -> Result<Record, StoreError> {
    let content: Vec<u8> = get(row, "content")?;
    Ok(Record {
        key: key(row, "kind", "id")?,
        version: to_u64(get(row, "version")?),
        content: Bytes::from(content),
    })
}

pub(crate) fn delivery(row: &Row) -> Result<Delivery, StoreError> {
    let msg_id: &str = get(row, "msg_id")?;
    let msg_type: &str = get(row, "msg_type")?;
    let corrupt = |rule: countersign_wire::Rule| StoreError::corrupt(rule.to_string());
    Ok(Delivery {
        number: to_u64(get(row, "number")?),
        msg_id: msg_id.parse().map_err(corrupt)?,
        msg_type: msg_type.parse::<MsgType>().map_err(corrupt)?,
        subject: key(row, "subject_kind", "subject_id")?,
        payload: get::<Option<&[u8]>>(row, "payload")?.map(payload_id).transpose()?,
        at: timestamp(row, "at")?,
        until: timestamp(row, "until")?,
    })
}

pub(crate) fn payload_id(bytes: &[u8]) -> Result<PayloadId, StoreError> {
    let bytes = bytes.try_into().map_err(|_| StoreError::corrupt("a payload id is not 16 bytes"))?;
    Ok(PayloadId(u128::from_be_bytes(bytes)))
}

pub(crate) fn payload_bytes(id: PayloadId) -> [u8; 16] {
    id.0.to_be_bytes()
}
