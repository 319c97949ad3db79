//! Migrations: applied in order, once, whichever node comes first.

use sha2::{Digest as _, Sha256};
use tokio_postgres::Client;

use crate::OpenError;

/// Only ever added to.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_initial.sql")];

/// Any number, as long as every version of this program uses the same.
const LOCK: i64 = 0x00c0_0a7e_2516_0001;

/// Brings the schema up to date under a lock that other nodes wait for.
pub(crate) async fn migrate(client: &mut Client) -> Result<(), OpenError> {
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    transaction
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS migration (number integer PRIMARY KEY, checksum bytea NOT NULL)",
        )
        .await?;
    let applied = transaction.query("SELECT number, checksum FROM migration ORDER BY number", &[]).await?;
    let found = applied.last().map_or(0, |row| row.get(0));
    if found > known {
        return Err(OpenError::SchemaNewer { found, known });
    }
    for (number, sql) in (1..).zip(MIGRATIONS) {
        let checksum = Sha256::digest(sql).to_vec();
        match applied.iter().find(|row| row.get::<_, i32>(0) == number) {
            Some(row) if row.get::<_, Vec<u8>>(1) == checksum => {}
            Some(_) => return Err(OpenError::MigrationChanged { number }),
            None => {
                transaction.batch_execute(sql).await?;
                transaction
                    .execute(
                        "INSERT INTO migration (number, checksum) VALUES ($1, $2)",
                        &[&number, &checksum],
                    )
                    .await?;
            }
        }
    }
    Ok(transaction.commit().await?)
}
