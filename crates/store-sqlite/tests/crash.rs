//! The process is killed while it commits, again and again on one file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{path::Path, sync::Arc};

use countersign_store_sqlite::{Options, SqliteStore};
use countersign_testkit::crash::{self, ChildTask, CommitReport, CrashLog};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::runtime::Runtime;

fn open(path: impl AsRef<Path>) -> SqliteStore {
    SqliteStore::open(path, Options::default()).unwrap()
}

/// What the port does not show: payloads and audit rows that belong to no change.
fn assert_nothing_is_left_over(path: &Path, changes: u64) {
    let conn = Connection::open(path).unwrap();
    let damage: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(damage, "ok");
    for table in ["record", "payload", "delivery", "due", "audit"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let rows: i64 = conn.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, i64::try_from(changes).unwrap(), "rows of {table}");
    }
}

#[test]
fn what_was_acknowledged_outlives_a_killed_process_and_nothing_is_half_there() {
    let runtime = Runtime::new().unwrap();
    if let Some(ChildTask { database, from }) = crash::child_task() {
        let store = Arc::new(open(database));
        return runtime.block_on(crash::write_until_killed(store, from));
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("countersign.db");
    let mut ledger = CrashLog::default();
    for round in 0..crash::rounds(100) {
        let acked = crash::run_child_and_kill(
            "what_was_acknowledged_outlives_a_killed_process_and_nothing_is_half_there",
            &path,
            crash::first_id(round),
            crash::acks_before_kill(round),
        );
        let reports: Vec<CommitReport> = acked.into_iter().map(CommitReport::Acked).collect();
        let store = open(&path);
        runtime.block_on(async {
            ledger.verify_round(&store, &reports).await;
            store.close().await;
        });
    }
    runtime.block_on(ledger.verify_all(&open(&path)));
    assert_nothing_is_left_over(&path, ledger.found());
    println!("SQLite, the process killed: {ledger}");
}

/// The failure of the check of a small database after this SQL.
fn complaint_about(loss: &str) -> Option<String> {
    let runtime = Runtime::new().unwrap();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("countersign.db");
    let store = open(&path);
    let acked = runtime.block_on(crash::write(&store, 0..4));
    Connection::open(&path).unwrap().execute_batch(loss).unwrap();
    let checked = runtime.spawn(async move { crash::verify(&store, &acked).await });
    let panicked = runtime.block_on(checked).err()?;
    Some(*panicked.into_panic().downcast::<String>().unwrap())
}

/// Tests the crash test: it must notice every kind of loss.
#[test]
fn a_loss_of_any_part_is_noticed() {
    let losses = [
        ("DELETE FROM record", "[false, true, true, true]"),
        ("DELETE FROM payload", "[true, false, true, true]"),
        ("DELETE FROM due", "[true, true, true, false]"),
        ("DELETE FROM delivery WHERE number = 1", "a gap in the numbers"),
        ("DELETE FROM delivery WHERE number = 2", "is its highest number"),
        ("UPDATE mailbox SET counter = counter + 1", "is its highest number"),
        ("UPDATE record SET version = 2", "the record of change"),
        ("UPDATE record SET content = x'00'", "the record of change"),
        ("UPDATE payload SET content = x'00'", "the payload of change"),
        ("UPDATE delivery SET until = 0", "the delivery of change"),
        ("UPDATE due SET at = at + 1", "is due"),
        (
            "DELETE FROM record; DELETE FROM payload; DELETE FROM due; DELETE FROM delivery; \
             DELETE FROM mailbox",
            "acknowledged, but gone",
        ),
    ];
    for (loss, complaint) in losses {
        let found = complaint_about(loss);
        assert!(found.as_deref().is_some_and(|found| found.contains(complaint)), "{loss}: {found:?}");
    }
    assert_eq!(complaint_about(""), None, "where nothing is lost");
}
