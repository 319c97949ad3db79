//! Migrations: numbered from one, each applied once, never changed afterwards.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use sha2::{Digest, Sha256};

use crate::open::OpenError;

const MIGRATIONS: &[(i64, &str)] = &[(1, include_str!("../migrations/0001_initial.sql"))];

/// Brings the file to the schema of this version, or refuses it.
pub(crate) fn migrate(conn: &mut Connection) -> Result<(), OpenError> {
    // Whoever comes second waits here, and then finds everything applied.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY, checksum BLOB NOT NULL) STRICT",
    )?;
    refuse_newer(&tx)?;
    for &(number, sql) in MIGRATIONS {
        let checksum: [u8; 32] = Sha256::digest(sql).into();
        match applied(&tx, number)? {
            Some(found) if found == checksum => {}
            Some(_) => return Err(OpenError::ChangedMigration { number }),
            None => {
                tx.execute_batch(sql)?;
                tx.execute("INSERT INTO migration VALUES (?1, ?2)", params![number, checksum])?;
            }
        }
    }
    tx.commit()?;
    Ok(())
}

fn refuse_newer(conn: &Connection) -> Result<(), OpenError> {
    let found: Option<i64> = conn.query_row("SELECT max(number) FROM migration", [], |row| row.get(0))?;
    let known = MIGRATIONS.last().map_or(0, |&(number, _)| number);
    match found {
        Some(found) if found > known => Err(OpenError::NewerSchema { found, known }),
        _ => Ok(()),
    }
}

fn applied(conn: &Connection, number: i64) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.query_row("SELECT checksum FROM migration WHERE number = ?1", [number], |row| row.get(0)).optional()
}
