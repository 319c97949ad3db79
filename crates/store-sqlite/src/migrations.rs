//! Applies the migrations that the database still needs, under a lock that other processes wait for.

use countersign_core::store::migrations::{AppliedMigration, Migration, pending};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::error::OpenError;

// CONTRIBUTING: add a migration, step 2
/// How to write one: docs/migrations.md.
const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, sql: include_str!("../migrations/0001_initial.sql"), oldest_program: 1 },
    Migration {
        number: 2,
        sql: include_str!("../migrations/0002_noted_changes_and_stored_bytes.sql"),
        oldest_program: 1,
    },
];

/// Brings the schema up to date, or rejects one that this program does not know.
pub(crate) fn migrate(conn: &mut Connection) -> Result<(), OpenError> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS migration \
         (number INTEGER PRIMARY KEY, checksum BLOB NOT NULL, oldest_program INTEGER) STRICT",
    )?;
    // A file that was made before this was recorded.
    if !tx.column_exists(None, "migration", "oldest_program")? {
        tx.execute_batch("ALTER TABLE migration ADD COLUMN oldest_program INTEGER")?;
    }
    for migration in pending(MIGRATIONS, &applied(&tx)?)? {
        tx.execute_batch(migration.sql)?;
        tx.execute(
            "INSERT INTO migration (number, checksum, oldest_program) VALUES (?1, ?2, ?3)",
            params![migration.number, migration.checksum(), migration.oldest_program],
        )?;
    }
    Ok(tx.commit()?)
}

fn applied(conn: &Connection) -> rusqlite::Result<Vec<AppliedMigration>> {
    conn.prepare("SELECT number, checksum, oldest_program FROM migration")?
        .query_map([], |row| {
            Ok(AppliedMigration {
                number: row.get("number")?,
                checksum: row.get("checksum")?,
                oldest_program: row.get("oldest_program")?,
            })
        })?
        .collect()
}
