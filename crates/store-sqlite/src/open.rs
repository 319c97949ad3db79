//! Connections to the file, and why there may be none.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, ErrorCode, OpenFlags};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// SQLite refuses the file.
    #[error("the database can't be opened: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The file can't have a write-ahead log, for instance on a network drive.
    #[error("the database needs the journal mode wal, but stays at {0}")]
    NotWal(String),
    /// A newer version of Countersign has written the file.
    #[error("the database has schema {found}, and this version knows only up to {known}")]
    NewerSchema {
        /// What the file has.
        found: i64,
        /// What this version knows.
        known: i64,
    },
    /// A migration was applied to the file that is not the one that this version has.
    #[error("migration {number} of the database is not the one that this version has")]
    ChangedMigration {
        /// Which one.
        number: i64,
    },
    /// There is no thread for the writer.
    #[error("the writer's thread can't be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// How often to ask for the write-ahead log while other processes ask for it too.
const WAL_ATTEMPTS: usize = 100;

/// A connection that writes. Makes the file where there is none.
pub(crate) fn for_writing(path: &Path, busy_timeout: Duration) -> Result<Connection, OpenError> {
    let conn = connect(path, busy_timeout, OpenFlags::SQLITE_OPEN_CREATE)?;
    switch_to_wal(&conn)?;
    // FULL syncs the log before a commit becomes visible: whatever anybody reads is durable.
    conn.pragma_update(None, "synchronous", "FULL")?;
    // On Apple's systems, a sync without these reaches only the drive's cache. Elsewhere they do nothing.
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    // Keys come at random places: with the default of 2 MB, pages that a batch changes are written, thrown out
    // and read again within it.
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // What a savepoint may have to take back is kept in memory and not in a temporary file.
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    // Copying the log into the file costs a sync each time; four times the default makes it four times rarer.
    conn.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    // After a burst, the log gives its room back.
    conn.pragma_update(None, "journal_size_limit", 64 * 1_024 * 1_024)?;
    Ok(conn)
}

/// The cache of the writing connection.
const CACHE_KIB: i64 = 64 * 1_024;

/// A connection that only reads. The file must be there.
pub(crate) fn for_reading(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let conn = connect(path, busy_timeout, OpenFlags::empty())?;
    // Not opened read-only: a reader has to write to the index of the log.
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

fn connect(path: &Path, busy_timeout: Duration, more: OpenFlags) -> rusqlite::Result<Connection> {
    // Not the default flags: they would take a path that begins with "file:" for a URI.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(busy_timeout)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

fn switch_to_wal(conn: &Connection) -> Result<(), OpenError> {
    let mut attempts = 1..=WAL_ATTEMPTS;
    loop {
        match conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => return Err(OpenError::NotWal(mode)),
            // Two that switch at once would wait for each other for ever, so SQLite refuses one of them
            // without any timeout. A transaction does wait, until the other one is through.
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
