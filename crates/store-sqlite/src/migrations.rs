//! Applies the migrations that the database still needs, under a lock that other processes wait for.

use countersign_core::store::migrations::{AppliedMigration, pending};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::error::OpenError;

/// Numbered from one, in this order. A released migration is never changed.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_initial.sql")];

/// Brings the schema up to date, or rejects one that this program does not know.
pub(crate) fn migrate(conn: &mut Connection) -> Result<(), OpenError> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY, checksum BLOB NOT NULL) STRICT",
    )?;
    for migration in pending(MIGRATIONS, &applied(&tx)?)? {
        tx.execute_batch(migration.sql)?;
        tx.execute(
            "INSERT INTO migration (number, checksum) VALUES (?1, ?2)",
            params![migration.number, migration.checksum()],
        )?;
    }
    Ok(tx.commit()?)
}

fn applied(conn: &Connection) -> rusqlite::Result<Vec<AppliedMigration>> {
    conn.prepare("SELECT number, checksum FROM migration")?
        .query_map([], |row| {
            Ok(AppliedMigration { number: row.get("number")?, checksum: row.get("checksum")? })
        })?
        .collect()
}
