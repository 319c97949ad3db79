//! Creates connections to the file, with the settings that make a commit durable.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::OpenError;

/// How often to retry the switch to the write-ahead log while other processes switch too.
const MAX_WAL_ATTEMPTS: usize = 100;

/// The page cache of the writing connection.
const CACHE_KIB: i64 = 64 * 1_024;

/// A connection that writes. Creates the file if it does not exist.
pub(crate) fn for_writing(path: &Path, busy_timeout: Duration) -> Result<Connection, OpenError> {
    let conn = connect(path, busy_timeout, OpenFlags::SQLITE_OPEN_CREATE)?;
    switch_to_wal(&conn)?;
    // FULL syncs the log before a commit becomes visible: everything that is read is durable.
    conn.pragma_update(None, "synchronous", "FULL")?;
    // On macOS, a sync without these reaches only the drive's cache. Elsewhere they have no effect.
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    // Keys are random: with the default cache of 2 MB, pages that a batch changes are written, evicted and read
    // again within the batch.
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // Savepoints keep their rollback data in memory and not in a temporary file.
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    // Each checkpoint costs a sync; four times the default interval makes checkpoints four times rarer.
    conn.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    // Truncates the log after a burst.
    conn.pragma_update(None, "journal_size_limit", 64 * 1_024 * 1_024)?;
    Ok(conn)
}

/// A connection that only reads. The file must exist.
pub(crate) fn for_reading(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let conn = connect(path, busy_timeout, OpenFlags::empty())?;
    // Not opened read-only: a reader has to write to the shared-memory index of the log.
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

fn connect(path: &Path, busy_timeout: Duration, extra_flags: OpenFlags) -> rusqlite::Result<Connection> {
    // Not the default flags: with them, a path that begins with "file:" is a URI.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | extra_flags;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(busy_timeout)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

fn switch_to_wal(conn: &Connection) -> Result<(), OpenError> {
    let mut attempts = 1..=MAX_WAL_ATTEMPTS;
    loop {
        match conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => return Err(OpenError::NotWal(mode)),
            // Two connections that switch at once would deadlock, so SQLite fails one of them without waiting
            // for the busy timeout. A transaction does wait until the other one has switched.
            Err(error) if is_busy(&error) && attempts.next().is_some() => {
                conn.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}
