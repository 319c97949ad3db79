//! Applies the migrations that the database still needs, under a lock that other nodes wait for.

use countersign_core::store::migrations::{AppliedMigration, Migration, pending};
use tokio_postgres::{Client, Error, Transaction};

use crate::error::OpenError;

// CONTRIBUTING: add a migration, step 2
/// How to write one: docs/migrations.md.
const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, sql: include_str!("../migrations/0001_initial.sql"), oldest_program: 1 },
    Migration { number: 2, sql: include_str!("../migrations/0002_payloads_in_line.sql"), oldest_program: 1 },
    Migration {
        number: 3,
        sql: include_str!("../migrations/0003_noted_changes_and_stored_bytes.sql"),
        oldest_program: 1,
    },
    Migration { number: 4, sql: include_str!("../migrations/0004_residences.sql"), oldest_program: 1 },
];

/// The migration with which a program knows of shards: no older one opens a database that is one of several.
pub(crate) const SHARDS_NEED: i32 = 4;

/// The key of the advisory lock. Every version of this program must use the same.
const LOCK: i64 = 0x00c0_0a7e_2516_0001;

/// Brings the schema up to date, or rejects one that this program does not know.
pub(crate) async fn migrate(client: &mut Client) -> Result<(), OpenError> {
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    transaction
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS migration (number integer PRIMARY KEY, checksum bytea NOT NULL); \
             ALTER TABLE migration ADD COLUMN IF NOT EXISTS oldest_program integer",
        )
        .await?;
    for migration in pending(MIGRATIONS, &applied(&transaction).await?)? {
        transaction.batch_execute(migration.sql).await?;
        let [number, oldest_program] =
            [migration.number, migration.oldest_program].map(|of| i32::try_from(of).unwrap_or(i32::MAX));
        let checksum = migration.checksum();
        transaction
            .execute(
                "INSERT INTO migration (number, checksum, oldest_program) VALUES ($1, $2, $3)",
                &[&number, &checksum.as_slice(), &oldest_program],
            )
            .await?;
    }
    Ok(transaction.commit().await?)
}

async fn applied(transaction: &Transaction<'_>) -> Result<Vec<AppliedMigration>, Error> {
    let rows = transaction.query("SELECT number, checksum, oldest_program FROM migration", &[]).await?;
    rows.iter()
        .map(|row| {
            let number: i32 = row.try_get("number")?;
            let oldest_program: Option<i32> = row.try_get("oldest_program")?;
            Ok(AppliedMigration {
                number: u32::try_from(number).unwrap_or_default(),
                checksum: row.try_get("checksum")?,
                oldest_program: oldest_program.and_then(|of| u32::try_from(of).ok()),
            })
        })
        .collect()
}
