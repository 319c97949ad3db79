//! Deletes old rows of the audit log.

use countersign_core::store::StoreError;
use countersign_wire::timestamp::Timestamp;
use rusqlite::{Connection, params};

use crate::error::store_error;

/// Deletes those of the oldest `limit` rows that are from before this time; says how many. Rows are numbered in the order
/// of their commits, so it reads no more than it may delete. Those of a time when the clock was ahead keep others waiting
/// until they are old too.
pub(crate) fn delete(conn: &Connection, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    let delete = || {
        let mut delete = conn.prepare_cached(include_str!("../queries/audit_delete.sql"))?;
        delete.execute(params![before.unix_micros(), i64::from(limit)])
    };
    delete().map(|count| count as u64).map_err(store_error)
}
