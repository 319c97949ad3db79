//! Writes several changes in one transaction: one sync of the disk for all of them, an outcome for each.

use countersign_core::store::{Change, Outcome, StoreError};
use countersign_wire::timestamp::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::{clock::Clock, commit::commit, error::store_error};

/// For one change of a batch.
pub(crate) type CommitResult = Result<Outcome, StoreError>;

/// Commits `changes` together. Returns a result for each, in their order, or one error for all.
pub(crate) fn write(
    conn: &mut Connection,
    clock: &Clock,
    changes: &[&Change],
) -> Result<Vec<CommitResult>, StoreError> {
    // Only what nobody relies on before a lease is renewed goes without the sync, and is synced with the next one.
    let is_carried = changes.iter().all(|change| change.is_carried_by_a_lease());
    set_synced(conn, !is_carried)?;
    let results = write_all(conn, clock, changes);
    set_synced(conn, true)?;
    results
}

fn set_synced(conn: &Connection, is_synced: bool) -> Result<(), StoreError> {
    conn.pragma_update(None, "synchronous", if is_synced { "FULL" } else { "NORMAL" }).map_err(store_error)
}

fn write_all(
    conn: &mut Connection,
    clock: &Clock,
    changes: &[&Change],
) -> Result<Vec<CommitResult>, StoreError> {
    // Immediate: waits here for other processes that write, so that the guards are checked after them.
    let mut tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(store_error)?;
    let mut results = Vec::new();
    for change in changes {
        results.push(write_one(&mut tx, change, clock.now())?);
    }
    tx.commit().map_err(|error| {
        // The log may have reached the disk anyway; then the changes are there after a restart.
        tracing::error!(%error, changes = results.len(), "the commit of a batch failed; its outcome is unknown");
        StoreError::OutcomeUnknown
    })?;
    Ok(results)
}

/// The outer error means that the whole transaction was rolled back.
fn write_one(tx: &mut Transaction<'_>, change: &Change, now: Timestamp) -> Result<CommitResult, StoreError> {
    let mut savepoint = tx.savepoint().map_err(store_error)?;
    match commit(&savepoint, change, now) {
        Ok(outcome) => {
            savepoint.commit().map_err(store_error)?;
            Ok(Ok(outcome))
        }
        Err(error) => {
            tracing::warn!(%error, "SQLite rejected a change; it is rolled back, the rest of its batch is not");
            // SQLite rolls back the whole transaction if, for instance, the disk is full; then this fails.
            match savepoint.rollback() {
                Ok(()) => Ok(Err(store_error(error))),
                Err(_) => Err(store_error(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use countersign_core::store::{Guard, Key, Kind, PayloadId, Put};
    use tempfile::TempDir;

    use super::*;
    use crate::{connect, migrations, reads};

    fn put(id: &str, size: usize) -> Change {
        let content = Bytes::from(vec![b'x'; size]);
        let mut change = Change::new("tenant".parse().unwrap());
        change.guards.push(Guard::Absent(Key::new(Kind::Route, id)));
        change.puts.push(Put { key: Key::new(Kind::Route, id), content });
        change
    }

    fn database() -> (TempDir, Connection) {
        let folder = TempDir::new().unwrap();
        let mut conn = connect::for_writing(&folder.path().join("db"), Duration::ZERO).unwrap();
        migrations::migrate(&mut conn).unwrap();
        (folder, conn)
    }

    fn exists(conn: &Connection, change: &Change) -> bool {
        reads::record(conn, &change.tenant, &change.puts[0].key).unwrap().is_some()
    }

    #[test]
    fn a_failed_commit_has_an_unknown_outcome_and_the_next_one_succeeds() {
        let (_folder, mut conn) = database();
        // A deferred constraint is checked by COMMIT alone.
        conn.execute_batch(
            "PRAGMA foreign_keys = ON;
             CREATE TABLE parent (id INTEGER PRIMARY KEY);
             CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
             CREATE TRIGGER fail AFTER INSERT ON record WHEN NEW.id = 'bad'
             BEGIN INSERT INTO child VALUES (1); END;",
        )
        .unwrap();
        let clock = Clock::system();
        let (bad, good) = (put("bad", 1), put("good", 1));
        assert_eq!(
            write(&mut conn, &clock, &[&good, &bad]),
            Err(StoreError::OutcomeUnknown),
            "for all of the batch"
        );
        assert!(!exists(&conn, &good));
        assert!(matches!(write(&mut conn, &clock, &[&good]).unwrap()[..], [Ok(_)]));
        assert!(exists(&conn, &good));
    }

    #[test]
    fn only_a_batch_of_channels_and_presence_is_not_synced() {
        let (_folder, mut conn) = database();
        // What SQLite was told when the row was written: 1 is NORMAL, 2 is FULL.
        conn.execute_batch(
            "CREATE TABLE seen (id, synchronous);
             CREATE TRIGGER look AFTER INSERT ON record BEGIN
                 INSERT INTO seen SELECT NEW.id, synchronous FROM pragma_synchronous; END;",
        )
        .unwrap();
        let channels = |id: &str| {
            let mut change = Change::new("tenant".parse().unwrap());
            change.puts.push(Put { key: Key::new(Kind::Channels, id), content: Bytes::from_static(b"{}") });
            change
        };
        let clock = Clock::system();
        write(&mut conn, &clock, &[&channels("a"), &channels("b")]).unwrap();
        write(&mut conn, &clock, &[&channels("c"), &put("d", 1)]).unwrap();
        write(&mut conn, &clock, &[&put("e", 1)]).unwrap();
        let mut rows = conn.prepare("SELECT id || synchronous FROM seen ORDER BY id").unwrap();
        let rows: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows, ["a1", "b1", "c2", "d2", "e2"]);
        let after: i64 = conn.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        assert_eq!(after, 2);
    }

    #[test]
    fn a_payload_that_does_not_fit_on_the_disk_refuses_its_own_change() {
        let (_folder, mut conn) = database();
        let pages: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        conn.pragma_update(None, "max_page_count", pages + 10).unwrap();
        let clock = Clock::system();
        let (small, mut large) = (put("small", 1), put("large", 1));
        large.payloads.push((PayloadId(1), Bytes::from(vec![b'x'; 1_000_000])));
        let results = write(&mut conn, &clock, &[&small, &large]).unwrap();
        assert!(matches!(results[..], [Ok(_), Err(StoreError::Unavailable(_))]), "{results:?}");
        assert!(exists(&conn, &small) && !exists(&conn, &large));
    }

    #[test]
    fn a_record_that_does_not_fit_on_the_disk_refuses_its_own_change() {
        let (_folder, mut conn) = database();
        let pages: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        conn.pragma_update(None, "max_page_count", pages + 10).unwrap();
        let (small, large, other) = (put("small", 1), put("large", 1_000_000), put("other", 1));
        let results = write(&mut conn, &Clock::system(), &[&small, &large, &other]).unwrap();
        assert!(matches!(results[..], [Ok(_), Err(StoreError::Unavailable(_)), Ok(_)]), "{results:?}");
        assert_eq!([&small, &large, &other].map(|change| exists(&conn, change)), [true, false, true]);
    }

    #[test]
    fn a_change_sees_what_an_earlier_one_of_its_batch_wrote() {
        let (_folder, mut conn) = database();
        let (first, again) = (put("a", 1), put("a", 2));
        let results = write(&mut conn, &Clock::system(), &[&first, &again]).unwrap();
        let [Ok(Outcome::Committed { .. }), Ok(Outcome::Conflict { current, .. })] = &results[..] else {
            panic!("{results:?}")
        };
        assert!(matches!(&current[..], [Some(record)] if record.content.len() == 1));
    }
}
