//! Every query of `queries/` finds its rows by a key: none reads a whole table, none sorts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path};

use countersign_store_sqlite::{Options, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

fn plan(conn: &Connection, sql: &str) -> Vec<String> {
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let mut rows = explain.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get("detail").unwrap());
    }
    steps
}

/// The steps whose cost grows with the table.
fn slow_steps(steps: &[String]) -> Vec<&String> {
    steps.iter().filter(|step| step.contains("SCAN") || step.contains("USE TEMP B-TREE")).collect()
}

fn database() -> (TempDir, Connection) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("countersign.db");
    SqliteStore::open(&path, Options::default()).unwrap();
    let conn = Connection::open(path).unwrap();
    (folder, conn)
}

#[test]
fn every_query_searches_and_none_scans_or_sorts() {
    let (_folder, conn) = database();
    let mut seen = Vec::new();
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("queries")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let steps = plan(&conn, &fs::read_to_string(&path).unwrap());
        assert!(steps.iter().any(|step| step.starts_with("SEARCH ")), "{name}: {steps:#?}");
        assert!(slow_steps(&steps).is_empty(), "{name}: {steps:#?}");
        seen.push(name);
    }
    seen.sort();
    assert_eq!(
        seen,
        [
            "audit_delete",
            "deliveries",
            "deliveries_by_subject",
            "due_next",
            "due_of_turn",
            "head",
            "load",
            "noted",
            "noted_forget",
            "payload",
            "scan",
            "scan_after",
            "stored_bytes",
            "tenants"
        ]
    );
}

#[test]
fn a_tenants_audit_log_is_read_in_order_by_its_index() {
    let (_folder, conn) = database();
    let steps = plan(
        &conn,
        "SELECT at, seq, event FROM audit WHERE tenant = ?1 AND (at, seq) > (?2, ?3) ORDER BY at, seq LIMIT 1000",
    );
    assert!(steps.iter().any(|step| step.contains("audit_by_tenant")), "{steps:#?}");
    assert!(slow_steps(&steps).is_empty(), "{steps:#?}");
}

/// What commits and claims change or delete, as the sources have it.
const WRITES: &[&str] = &[
    "UPDATE due SET at = ?4 WHERE tenant = ?1 AND kind = ?2 AND id = ?3",
    "DELETE FROM due WHERE tenant = ?1 AND kind = ?2 AND id = ?3",
    "DELETE FROM record WHERE tenant = ?1 AND kind = ?2 AND id = ?3",
    "DELETE FROM payload WHERE id = ?1 AND tenant = ?2",
    "DELETE FROM delivery WHERE tenant = ?1 AND mailbox = ?2 AND number = ?3",
    "DELETE FROM mark WHERE tenant = ?1 AND mailbox = ?2 AND number = ?3",
];

#[test]
fn what_is_changed_or_deleted_is_found_by_its_key() {
    let (_folder, conn) = database();
    let sources = ["commit.rs", "mailboxes.rs", "claims.rs"].map(|file| {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)).unwrap()
    });
    for sql in WRITES {
        assert!(sources.iter().any(|source| source.contains(sql)), "no longer written like this: {sql}");
        let steps = plan(&conn, sql);
        assert!(steps.iter().any(|step| step.starts_with("SEARCH ")), "{sql}: {steps:#?}");
        assert!(slow_steps(&steps).is_empty(), "{sql}: {steps:#?}");
    }
}

#[test]
fn a_scan_and_a_sort_would_be_noticed() {
    let (_folder, conn) = database();
    for sql in ["SELECT * FROM delivery WHERE until > ?1", "SELECT * FROM due WHERE at <= ?1 ORDER BY id"] {
        let steps = plan(&conn, sql);
        assert!(!slow_steps(&steps).is_empty(), "{sql}: {steps:#?}");
    }
}
