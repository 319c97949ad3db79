//! What only this store has: the file, its schema, the writer's queue.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{path::PathBuf, pin::pin, sync::Arc, thread, time::Duration};

use bytes::Bytes;
use countersign_core::store::{
    Change, Guard, Key, Kind, Outcome, PayloadId, Put, Store, StoreError, migrations::MigrationError,
};
use countersign_store_sqlite::{OpenError, Options, SqliteStore};
use countersign_wire::{hash::Sha256Hex, id::TenantId, timestamp::Timestamp};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::task::JoinSet;

struct File {
    folder: TempDir,
}

impl File {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("countersign.db")
    }

    fn open(&self, options: Options) -> SqliteStore {
        SqliteStore::open(self.path(), options).unwrap()
    }

    fn open_error(&self) -> OpenError {
        SqliteStore::open(self.path(), Options::default()).unwrap_err()
    }

    /// A connection of another process.
    fn connect(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    /// Another process that holds the write lock until its transaction is rolled back.
    fn occupy(&self) -> Connection {
        let conn = self.connect();
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        conn
    }
}

fn tenant() -> TenantId {
    "tenant".parse().unwrap()
}

fn key(id: impl std::fmt::Display) -> Key {
    Key::new(Kind::Route, id)
}

fn put(id: impl std::fmt::Display) -> Change {
    let mut change = Change::new(tenant());
    change.puts.push(Put { key: key(id), content: Bytes::from_static(b"content") });
    change
}

async fn exists(store: &SqliteStore, id: impl std::fmt::Display) -> bool {
    store.load(&tenant(), &[key(id)]).await.unwrap().records[0].is_some()
}

#[test]
fn a_newer_schema_is_refused() {
    let file = File::new();
    file.open(Options::default());
    file.connect().execute("INSERT INTO migration VALUES (7, zeroblob(32), 3)", []).unwrap();
    let error = file.open_error();
    assert!(
        matches!(error, OpenError::Migration(MigrationError::SchemaNewer { found: 7, oldest: 3, known: 2 })),
        "{error}"
    );
    file.connect().execute("UPDATE migration SET oldest_program = 2 WHERE number = 7", []).unwrap();
    // It names this program.
    file.open(Options::default());
}

#[test]
fn what_was_stored_before_bytes_were_counted_counts() {
    let file = File::new();
    let conn = file.connect();
    conn.execute_batch(include_str!("../migrations/0001_initial.sql")).unwrap();
    conn.execute("INSERT INTO payload VALUES (zeroblob(16), 'tenant', zeroblob(70000))", []).unwrap();
    let table = "CREATE TABLE migration (number INTEGER PRIMARY KEY, checksum BLOB NOT NULL, oldest_program INTEGER) STRICT";
    conn.execute_batch(table).unwrap();
    let digest = Sha256Hex::digest(include_bytes!("../migrations/0001_initial.sql"));
    conn.execute("INSERT INTO migration VALUES (1, ?1, 1)", [digest.as_bytes()]).unwrap();
    drop(conn);
    let store = file.open(Options::default());
    let stored = tokio::runtime::Runtime::new().unwrap().block_on(store.stored_bytes(&tenant())).unwrap();
    assert_eq!(stored, 71_024);
}

// CONTRIBUTING: add a migration, step 4
#[test]
fn a_file_of_the_previous_program_is_opened() {
    let file = File::new();
    file.open(Options::default());
    file.connect().execute_batch("ALTER TABLE migration DROP COLUMN oldest_program").unwrap();
    file.open(Options::default());
}

#[test]
fn a_changed_migration_is_refused() {
    let file = File::new();
    file.open(Options::default());
    file.connect().execute("UPDATE migration SET checksum = zeroblob(32)", []).unwrap();
    let error = file.open_error();
    assert!(matches!(error, OpenError::Migration(MigrationError::MigrationChanged { number: 1 })), "{error}");
}

#[test]
fn a_database_without_a_write_ahead_log_is_refused() {
    let error = SqliteStore::open(":memory:", Options::default()).unwrap_err();
    assert!(matches!(&error, OpenError::NotWal(mode) if mode == "memory"), "{error}");
}

#[test]
fn a_file_that_is_not_a_database_is_refused() {
    let file = File::new();
    std::fs::write(file.path(), "x".repeat(4_096)).unwrap();
    assert!(matches!(file.open_error(), OpenError::Engine(_)));
}

#[test]
fn stores_that_open_a_new_file_at_once_all_succeed() {
    for _ in 0..20 {
        let file = File::new();
        let start = std::sync::Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    file.open(Options::default())
                });
            }
        });
        let applied: i64 =
            file.connect().query_row("SELECT count(*) FROM migration", [], |row| row.get(0)).unwrap();
        assert_eq!(applied, 2);
    }
}

#[tokio::test]
async fn a_full_queue_is_overload_at_once() {
    let file = File::new();
    let store = Arc::new(file.open(Options { batching: false, queued_changes: 1, ..Options::default() }));
    let other = file.occupy();
    // The writer may have taken one, which waits for the other process; one more is queued.
    let mut commits = JoinSet::new();
    for id in 0..3 {
        let store = store.clone();
        commits.spawn(async move { (id, store.commit(put(id)).await) });
    }
    let mut refused = Vec::new();
    let (id, first) = commits.join_next().await.unwrap().unwrap();
    assert_eq!(first, Err(StoreError::Overloaded));
    refused.push(id);
    other.execute_batch("ROLLBACK").unwrap();
    while let Some(Ok((id, result))) = commits.join_next().await {
        match result {
            Ok(outcome) => assert!(matches!(outcome, Outcome::Committed { .. })),
            Err(error) => {
                assert_eq!(error, StoreError::Overloaded);
                refused.push(id);
            }
        }
    }
    for id in 0..3 {
        assert_eq!(exists(&store, id).await, !refused.contains(&id), "{id}");
    }
}

#[tokio::test]
async fn a_tenant_that_fills_its_half_of_the_queue_does_not_delay_another() {
    let file = File::new();
    let store = Arc::new(file.open(Options { batching: false, queued_changes: 40, ..Options::default() }));
    let other = file.occupy();
    let mut commits = JoinSet::new();
    let mut commit = |tenant: &str, id: u32| {
        let (store, tenant) = (store.clone(), tenant.to_owned());
        let change = Change { tenant: tenant.parse().unwrap(), ..put(id) };
        commits.spawn(async move { (tenant, store.commit(change).await) });
    };
    (0..40).for_each(|id| commit("loud", id));
    commit("quiet", 0);
    tokio::task::yield_now().await;
    other.execute_batch("ROLLBACK").unwrap();
    let mut refused = 0;
    let mut before = 0;
    while let Some(Ok((tenant, result))) = commits.join_next().await {
        match result {
            Ok(_) if tenant == "quiet" => break,
            Ok(_) => before += 1,
            Err(error) => {
                assert_eq!((tenant.as_str(), error), ("loud", StoreError::Overloaded));
                refused += 1;
            }
        }
    }
    // One may have been taken before the quiet one came, and a few replies may be received late.
    assert!((19..=20).contains(&refused), "{refused} refused");
    assert!(before < 15, "{before} of the loud tenant came first");
}

#[tokio::test]
async fn too_many_bytes_in_the_queue_are_overload_at_once() {
    let file = File::new();
    let store = Arc::new(file.open(Options { queued_bytes: 10, ..Options::default() }));
    let other = file.occupy();
    let large = tokio::spawn({
        let store = store.clone();
        let mut change = put("large");
        change.payloads.push((PayloadId(1), Bytes::from(vec![0; 1_000])));
        async move { store.commit(change).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(store.commit(put("small")).await, Err(StoreError::Overloaded));
    other.execute_batch("ROLLBACK").unwrap();
    assert!(
        matches!(large.await.unwrap(), Ok(Outcome::Committed { .. })),
        "a single change may have any size"
    );
    assert!(
        matches!(store.commit(put("small")).await, Ok(Outcome::Committed { .. })),
        "the bytes are free again"
    );
}

#[tokio::test]
async fn another_process_that_writes_for_too_long_is_overload() {
    let file = File::new();
    let store = file.open(Options { busy_timeout: Duration::from_millis(20), ..Options::default() });
    let other = file.occupy();
    assert_eq!(store.commit(put("a")).await, Err(StoreError::Overloaded));
    assert!(!exists(&store, "a").await, "and reads still work");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(matches!(store.commit(put("a")).await, Ok(Outcome::Committed { .. })));
}

#[tokio::test]
async fn a_change_that_fails_does_not_fail_the_rest_of_its_batch() {
    let file = File::new();
    let store = Arc::new(file.open(Options::default()));
    // While the other process writes, changes accumulate into one batch.
    let other = file.occupy();
    let mut commits = JoinSet::new();
    for id in 0..20 {
        let store = store.clone();
        let mut change = put(id);
        if id % 5 == 4 {
            let twice = (PayloadId(id), Bytes::from_static(b"payload"));
            change.payloads.extend([twice.clone(), twice]);
        }
        commits.spawn(async move { (id, store.commit(change).await) });
    }
    tokio::task::yield_now().await;
    other.execute_batch("ROLLBACK").unwrap();
    while let Some(Ok((id, result))) = commits.join_next().await {
        let bad = id % 5 == 4;
        match result {
            Ok(outcome) => assert!(!bad && matches!(outcome, Outcome::Committed { .. })),
            Err(error) => assert!(bad && matches!(error, StoreError::Unavailable(_)), "{id}: {error}"),
        }
        assert_eq!(exists(&store, id).await, !bad, "{id}");
        assert_eq!(store.payloads(&tenant(), &[PayloadId(id)]).await.unwrap(), [None]);
    }
}

#[tokio::test]
async fn closing_waits_for_what_is_queued() {
    let file = File::new();
    let store = file.open(Options::default());
    let other = file.occupy();
    {
        let mut commit = store.commit(put("a"));
        let waited = tokio::time::timeout(Duration::ZERO, &mut commit).await;
        assert!(waited.is_err(), "the caller stops waiting");
    }
    let mut closing = pin!(store.close());
    assert!(
        tokio::time::timeout(Duration::ZERO, &mut closing).await.is_err(),
        "the other process still writes"
    );
    other.execute_batch("ROLLBACK").unwrap();
    closing.await;
    assert!(exists(&file.open(Options::default()), "a").await);
}

#[tokio::test]
async fn stores_of_the_same_file_count_each_change_once() {
    let file = File::new();
    let stores = [Arc::new(file.open(Options::default())), Arc::new(file.open(Options::default()))];
    let mut commits = JoinSet::new();
    for store in stores.iter().cycle().take(8) {
        let store = store.clone();
        commits.spawn(async move {
            let mut committed = Vec::new();
            while committed.len() < 10 {
                let version = store.load(&tenant(), &[key("a")]).await.unwrap().records[0]
                    .as_ref()
                    .map_or(0, |record| record.version);
                let guard =
                    if version == 0 { Guard::Absent(key("a")) } else { Guard::Version(key("a"), version) };
                let mut change = put("a");
                change.guards.push(guard);
                if let Outcome::Committed { versions, .. } = store.commit(change).await.unwrap() {
                    committed.extend(versions);
                }
            }
            committed
        });
    }
    let mut versions = commits.join_all().await.concat();
    versions.sort_unstable();
    assert!(versions.iter().copied().eq(versions[0]..versions[0] + 80), "{versions:?}");
    let record = stores[0].load(&tenant(), &[key("a")]).await.unwrap().records.remove(0).unwrap();
    assert_eq!(record.version, versions[79]);
}

#[tokio::test]
async fn old_rows_of_the_audit_log_are_deleted_in_bounded_chunks() {
    let file = File::new();
    let store = file.open(Options::default());
    let conn = file.connect();
    for at in 0..10 {
        conn.execute(
            "INSERT INTO audit (tenant, at, subject_kind, subject_id, event) VALUES ('tenant', ?1, 1, 'r', x'')",
            [at],
        )
        .unwrap();
    }
    let left = || -> Vec<i64> {
        let mut rows = conn.prepare("SELECT at FROM audit ORDER BY seq").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let before = Timestamp::from_unix_micros(5);
    assert_eq!(store.sweep_audit(before, 3).await, Ok(3));
    assert_eq!(left(), [3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(store.sweep_audit(before, 3).await, Ok(2), "what is not older stays");
    assert_eq!(left(), [5, 6, 7, 8, 9]);
    assert_eq!(store.sweep_audit(before, 3).await, Ok(0));
    assert_eq!(store.sweep_audit(Timestamp::MAX, 100).await, Ok(5));
    assert_eq!(store.sweep_audit(Timestamp::MAX, 100).await, Ok(0), "nothing is left");
}

/// Every node claims for all tenants, and an older program may not know a kind of a newer one.
#[tokio::test]
async fn what_is_due_and_undecodable_does_not_keep_the_rest_from_being_claimed() {
    let file = File::new();
    let store = file.open(Options::default());
    file.connect()
        .execute_batch(
            "INSERT INTO due VALUES ('tenant', 99, 'unknown kind', 0), ('tenant', 1, 'a', 1), ('', 1, 'b', 0)",
        )
        .unwrap();
    let (claimed, _) = store.claim_due(10).await.unwrap();
    assert_eq!(claimed.into_iter().map(|due| due.key).collect::<Vec<_>>(), [Key::new(Kind::Exchange, "a")]);
    assert_eq!(store.claim_due(10).await.unwrap().0, []);
}

#[tokio::test]
async fn undecodable_values_are_corrupt_and_no_panic() {
    let file = File::new();
    let store = file.open(Options::default());
    file.connect()
        .execute_batch(
            "INSERT INTO record VALUES ('tenant', 9, 'below zero', -1, x'');
             INSERT INTO delivery VALUES ('tenant', 'nobody', 1, 'm', 'error', 1, 'subject', NULL, 0, 0);",
        )
        .unwrap();
    let corrupt = |error| assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
    corrupt(store.load(&tenant(), &[key("below zero")]).await.unwrap_err());
    corrupt(store.deliveries_by_subject(&tenant(), "subject").await.unwrap_err());
    let mut change = put("a");
    change.guards.push(Guard::Version(key("below zero"), 1));
    corrupt(store.commit(change).await.unwrap_err());
}
