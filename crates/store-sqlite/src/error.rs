//! Why the store can't be opened, and how SQLite's errors become the port's.

use countersign_core::store::{StoreError, migrations::MigrationError};
use rusqlite::{Error, ErrorCode};

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// SQLite can't open the file, or rejects a statement.
    #[error("the database can't be opened")]
    Engine(#[from] Error),
    /// The file can't have a write-ahead log, for instance on a network drive.
    #[error("the database needs the journal mode wal, but stays at {0}")]
    NotWal(String),
    #[error(transparent)]
    Migration(#[from] MigrationError),
    #[error("the writer's thread can't be started")]
    Thread(#[from] std::io::Error),
}

/// Only for an error after which nothing is written.
pub(crate) fn store_error(error: Error) -> StoreError {
    if let Error::FromSqlConversionFailure(..)
    | Error::IntegralValueOutOfRange(..)
    | Error::InvalidColumnType(..)
    | Error::Utf8Error(..) = error
    {
        return StoreError::corrupt(error);
    }
    match error.sqlite_error_code() {
        // Another process has held the write lock for longer than the timeout.
        Some(ErrorCode::DatabaseBusy) => StoreError::Overloaded,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::corrupt(error),
        _ => StoreError::unavailable(error),
    }
}
