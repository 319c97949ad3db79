//! Which migrations a database still needs. Each store applies them in its engine's own way; the decision is the same.

use countersign_wire::hash::Sha256Hex;

/// A migration in the program: numbered from one in the order of the list, never changed once it was released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    pub number: u32,
    pub sql: &'static str,
}

impl Migration {
    /// SHA-256 of the text, by which a changed migration is noticed.
    pub fn checksum(&self) -> [u8; 32] {
        *Sha256Hex::digest(self.sql.as_bytes()).as_bytes()
    }
}

/// A migration that the database says it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedMigration {
    pub number: u32,
    pub checksum: Vec<u8>,
}

/// Why the schema of a database does not fit this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    #[error("the database has schema version {found}, this program knows up to {known}; run a newer program")]
    SchemaNewer { found: u32, known: u32 },
    #[error(
        "migration {number} in the database is not the one in this program; restore the database or run the program that wrote it"
    )]
    MigrationChanged { number: u32 },
}

/// The migrations of `sql` that are not applied yet, in order.
pub fn pending(sql: &[&'static str], applied: &[AppliedMigration]) -> Result<Vec<Migration>, MigrationError> {
    let known: Vec<Migration> = (1..).zip(sql).map(|(number, sql)| Migration { number, sql }).collect();
    let newest_known = known.last().map_or(0, |migration| migration.number);
    let found = applied.iter().map(|migration| migration.number).max().unwrap_or(0);
    if found > newest_known {
        return Err(MigrationError::SchemaNewer { found, known: newest_known });
    }
    let mut pending = Vec::new();
    for migration in known {
        match applied.iter().find(|applied| applied.number == migration.number) {
            Some(applied) if applied.checksum == migration.checksum() => {}
            Some(_) => return Err(MigrationError::MigrationChanged { number: migration.number }),
            None => pending.push(migration),
        }
    }
    Ok(pending)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQL: &[&str] = &["one", "two"];

    fn applied(number: u32, sql: &'static str) -> AppliedMigration {
        AppliedMigration { number, checksum: Migration { number, sql }.checksum().to_vec() }
    }

    #[test]
    fn what_is_missing_is_pending_in_order() {
        let numbers = |applied: &[AppliedMigration]| -> Vec<u32> {
            pending(SQL, applied).unwrap().iter().map(|migration| migration.number).collect()
        };
        assert_eq!(numbers(&[]), [1, 2]);
        assert_eq!(numbers(&[applied(1, "one")]), [2]);
        assert_eq!(numbers(&[applied(1, "one"), applied(2, "two")]), [0_u32; 0]);
    }

    #[test]
    fn a_newer_schema_and_a_changed_migration_are_refused() {
        let newer = [applied(1, "one"), applied(2, "two"), applied(3, "three")];
        assert_eq!(pending(SQL, &newer), Err(MigrationError::SchemaNewer { found: 3, known: 2 }));
        let changed = [applied(1, "another")];
        assert_eq!(pending(SQL, &changed), Err(MigrationError::MigrationChanged { number: 1 }));
    }
}
