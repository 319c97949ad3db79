//! What commits have changed, as the triggers of the schema have noted it.

use countersign_core::store::{MailboxKey, NOTED_CHUNK, Noted, NotedPage, StoreError};
use countersign_wire::timestamp::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use crate::{error::store_error, reads, rows};

/// What was noted from a position on. There is one writer, so rows are numbered in the order of their commits.
pub(crate) fn read(conn: &Connection, since: Option<u64>, now: Timestamp) -> Result<NotedPage> {
    let last = conn
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'noted'")?
        .query_row([], rows::counter)
        .optional()?;
    let settled = last.unwrap_or(0) + 1;
    let since = rows::to_i64(since.unwrap_or(settled));
    let sql = include_str!("../queries/noted.sql");
    let found =
        reads::all(conn, sql, params![since, NOTED_CHUNK], |row| Ok((rows::counter(row)?, decoded(row))))?;
    let is_full = found.len() == NOTED_CHUNK as usize;
    let more_from = found.last().filter(|_| is_full).map(|(seq, _)| seq + 1);
    let changes = found.into_iter().filter_map(|(_, change)| change).collect();
    Ok(NotedPage { changes, more_from, settled, now })
}

/// A row that can't be decoded must not keep all others from being read.
fn decoded(row: &Row<'_>) -> Option<(Noted, u64)> {
    let decode = || {
        let (tenant, number) = (rows::tenant(row, 1)?, rows::count(row, 4)?);
        let noted = match row.get::<_, i16>(2)? {
            0 => Noted::Mailbox(MailboxKey { tenant, mailbox: rows::mailbox(row, 3)? }),
            _ => Noted::Record(tenant, rows::key(row, 2)?),
        };
        Ok::<_, rusqlite::Error>((noted, number))
    };
    decode().inspect_err(|error| tracing::error!(%error, "a row of the table noted can't be decoded")).ok()
}

/// Deletes up to `limit` rows from before this position; says how many.
pub(crate) fn forget(conn: &Connection, before: u64, limit: u32) -> Result<u64, StoreError> {
    let delete = || {
        let mut delete = conn.prepare_cached(include_str!("../queries/noted_forget.sql"))?;
        delete.execute(params![rows::to_i64(before), limit])
    };
    delete().map(|count| count as u64).map_err(store_error)
}
