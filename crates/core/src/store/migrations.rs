//! Which migrations a database still needs. Each store applies them in its engine's own way; the decision is the same.

use countersign_wire::hash::Sha256Hex;

// CONTRIBUTING: add a migration, step 2
/// A migration in the program: numbered from one in the order of the list, never changed once it is on the main branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    pub number: u32,
    pub sql: &'static str,
    /// The oldest program that works with the schema afterwards, by the newest migration that it knows. Less than `number` for
    /// a migration that only adds; nodes of both versions then run side by side.
    pub oldest_program: u32,
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
    /// `None` if it was applied before this was recorded: then no older program works.
    pub oldest_program: Option<u32>,
}

impl AppliedMigration {
    fn oldest_program(&self) -> u32 {
        self.oldest_program.unwrap_or(self.number)
    }
}

/// Why the schema of a database does not fit this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    #[error(
        "the database has schema version {found}, which needs a program that knows version {oldest}; this one knows up to {known}; run a newer program"
    )]
    SchemaNewer { found: u32, oldest: u32, known: u32 },
    #[error(
        "migration {number} in the database is not the one in this program; restore the database or run the program that wrote it"
    )]
    MigrationChanged { number: u32 },
}

// CONTRIBUTING: add a store, step 2
/// The `known` migrations that are not applied yet, in order. None if a newer program has migrated the database in a way
/// that this one works with.
pub fn pending(known: &[Migration], applied: &[AppliedMigration]) -> Result<Vec<Migration>, MigrationError> {
    let newest_known = known.last().map_or(0, |migration| migration.number);
    let found = applied.iter().map(|migration| migration.number).max().unwrap_or(0);
    let oldest = applied.iter().map(AppliedMigration::oldest_program).max().unwrap_or(0);
    if found > newest_known && oldest > newest_known {
        return Err(MigrationError::SchemaNewer { found, oldest, known: newest_known });
    }
    let mut pending = Vec::new();
    for migration in known {
        match applied.iter().find(|applied| applied.number == migration.number) {
            Some(applied) if applied.checksum == migration.checksum() => {}
            Some(_) => return Err(MigrationError::MigrationChanged { number: migration.number }),
            None => pending.push(*migration),
        }
    }
    Ok(pending)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Migration = Migration { number: 1, sql: "one", oldest_program: 1 };
    const TWO: Migration = Migration { number: 2, sql: "two", oldest_program: 1 };
    const KNOWN: &[Migration] = &[ONE, TWO];

    fn applied(migration: Migration) -> AppliedMigration {
        let Migration { number, oldest_program, .. } = migration;
        AppliedMigration {
            number,
            checksum: migration.checksum().to_vec(),
            oldest_program: Some(oldest_program),
        }
    }

    #[test]
    fn what_is_missing_is_pending_in_order() {
        assert_eq!(pending(KNOWN, &[]), Ok(vec![ONE, TWO]));
        assert_eq!(pending(KNOWN, &[applied(ONE)]), Ok(vec![TWO]));
        assert_eq!(pending(KNOWN, &[applied(ONE), applied(TWO)]), Ok(Vec::new()));
    }

    #[test]
    fn a_newer_schema_is_refused_unless_it_names_this_program() {
        let newer = |oldest_program| {
            let three = AppliedMigration { oldest_program, ..applied(Migration { number: 3, ..TWO }) };
            pending(KNOWN, &[applied(ONE), applied(TWO), three])
        };
        assert_eq!(newer(Some(2)), Ok(Vec::new()));
        let refused = Err(MigrationError::SchemaNewer { found: 3, oldest: 3, known: 2 });
        assert_eq!(newer(Some(3)), refused);
        assert_eq!(newer(None), refused, "applied before this was recorded");
    }

    #[test]
    fn one_migration_that_this_program_does_not_work_with_is_enough() {
        let three = applied(Migration { number: 3, oldest_program: 3, ..TWO });
        let four = applied(Migration { number: 4, oldest_program: 2, ..TWO });
        let refused = MigrationError::SchemaNewer { found: 4, oldest: 3, known: 2 };
        assert_eq!(pending(KNOWN, &[applied(ONE), applied(TWO), three, four]), Err(refused));
    }

    #[test]
    fn a_changed_migration_is_refused() {
        let changed = [applied(Migration { sql: "another", ..ONE })];
        assert_eq!(pending(KNOWN, &changed), Err(MigrationError::MigrationChanged { number: 1 }));
    }
}
