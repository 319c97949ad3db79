//! What is refused when the store is opened, and commits that must never be reported as success.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use countersign_core::store::{Change, Guard, Key, Kind, Outcome, Put, Store as _, StoreError, error_chain};
use countersign_store_postgres::{OpenError, Options, PostgresStore};
use countersign_testkit::postgres::Postgres;
use tokio_postgres::{Client, NoTls};

async fn server() -> (Postgres, Client) {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    (server, client)
}

/// Changes a setting of the whole server and waits until new sessions have it.
async fn set(server: &Postgres, client: &Client, setting: &str, value: &str) {
    client.batch_execute(&format!("ALTER SYSTEM SET {setting} = '{value}'")).await.unwrap();
    client.execute("SELECT pg_reload_conf()", &[]).await.unwrap();
    loop {
        let (probe, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let shown: String = probe.query_one(&format!("SHOW {setting}"), &[]).await.unwrap().get(0);
        if shown == value {
            return;
        }
    }
}

async fn open_error(options: Options) -> String {
    error_chain(&PostgresStore::open(options).await.map(drop).unwrap_err())
}

fn put(id: &str) -> Change {
    let key = Key::new(Kind::Exchange, id);
    let mut change = Change::new("acme".parse().unwrap());
    change.guards.push(Guard::Absent(key.clone()));
    change.puts.push(Put { key, content: "x".into() });
    change
}

#[tokio::test]
async fn a_server_that_would_lose_commits_is_refused() {
    let (server, client) = server().await;
    let options = || Options::new(server.url());
    set(&server, &client, "fsync", "off").await;
    let error = open_error(options()).await;
    assert!(error.contains("fsync is off"), "{error}");
    set(&server, &client, "fsync", "on").await;

    set(&server, &client, "synchronous_commit", "off").await;
    let error = open_error(options()).await;
    assert!(error.contains("synchronous_commit is off"), "{error}");

    // Without a standby, local is enough; with one, it is not.
    set(&server, &client, "synchronous_commit", "local").await;
    PostgresStore::open(options()).await.unwrap();
    set(&server, &client, "synchronous_standby_names", "standby").await;
    for insufficient in ["local", "remote_write"] {
        set(&server, &client, "synchronous_commit", insufficient).await;
        let error = open_error(options()).await;
        assert!(error.contains(&format!("synchronous_commit is {insufficient}")), "{error}");
    }
}

#[tokio::test]
async fn a_schema_that_this_program_does_not_know_is_refused() {
    let (server, client) = server().await;
    let options = || Options::new(server.url());
    PostgresStore::open(options()).await.unwrap();
    client.batch_execute("INSERT INTO migration VALUES (99, '')").await.unwrap();
    let error = open_error(options()).await;
    assert!(error.contains("version 99") && error.contains("newer program"), "{error}");
    client.batch_execute("UPDATE migration SET oldest_program = 2 WHERE number = 99").await.unwrap();
    PostgresStore::open(options()).await.expect("a schema that names this program");
    client
        .batch_execute("DELETE FROM migration WHERE number = 99; UPDATE migration SET checksum = ''")
        .await
        .unwrap();
    let error = open_error(options()).await;
    assert!(error.contains("migration 1"), "{error}");
}

#[tokio::test]
async fn nodes_that_start_together_migrate_once() {
    let (server, client) = server().await;
    let openings: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn(PostgresStore::open(Options {
                connections: 3,
                writers: 1,
                ..Options::new(server.url())
            }))
        })
        .collect();
    for opening in openings {
        opening.await.unwrap().unwrap();
    }
    let applied: i64 = client.query_one("SELECT count(*) FROM migration", &[]).await.unwrap().get(0);
    assert_eq!(applied, 4);
}

// CONTRIBUTING: add a migration, step 4
#[tokio::test]
async fn a_database_of_the_previous_program_is_migrated() {
    let (server, client) = server().await;
    let initial = include_str!("../migrations/0001_initial.sql");
    let table = "CREATE TABLE migration (number integer PRIMARY KEY, checksum bytea NOT NULL)";
    client.batch_execute(&format!("{table}; {initial}")).await.unwrap();
    let applied = "INSERT INTO migration VALUES (1, sha256(convert_to($1, 'UTF8')))";
    client.execute(applied, &[&initial]).await.unwrap();
    PostgresStore::open(Options::new(server.url())).await.unwrap();
    let rows = client.query("SELECT oldest_program FROM migration ORDER BY number", &[]).await.unwrap();
    let oldest: Vec<Option<i32>> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(oldest, [None, Some(1), Some(1), Some(1)]);
}

#[tokio::test]
async fn the_first_host_of_several_may_be_dead() {
    let (server, _) = server().await;
    let port = server.url().split("port=").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    // Nothing listens on port 1.
    let url = format!(
        "host=127.0.0.1,127.0.0.1 port=1,{port} user=postgres dbname=postgres target_session_attrs=read-write"
    );
    let store = PostgresStore::open(Options::new(url)).await.unwrap();
    assert!(matches!(store.commit(put("r")).await, Ok(Outcome::Committed { .. })));
}

#[tokio::test]
async fn a_wrong_connection_string_is_refused_without_repeating_it() {
    let error = open_error(Options::new("host=127.0.0.1 pasword=hunter2")).await;
    assert!(error.contains("connection string") && !error.contains("hunter2"), "{error}");
}

async fn waiting_for_standby(client: &Client) -> i64 {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    client.query_one(count, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_commit_whose_wait_for_the_standby_was_interrupted_is_never_success() {
    let (server, client) = server().await;
    let store = Arc::new(PostgresStore::open(Options::new(server.url())).await.unwrap());
    assert!(matches!(store.commit(put("before")).await, Ok(Outcome::Committed { .. })));
    set(&server, &client, "synchronous_standby_names", "nobody").await;

    // The server applies the setting after a while; until then commits succeed.
    let mut name = String::new();
    let mut committing = tokio::spawn(async { Err(StoreError::Overloaded) });
    for attempt in 0.. {
        name = format!("r{attempt}");
        let (waiting, change) = (Arc::clone(&store), put(&name));
        committing = tokio::spawn(async move { waiting.commit(change).await });
        while !committing.is_finished() && waiting_for_standby(&client).await == 0 {}
        if !committing.is_finished() {
            break;
        }
    }
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    client.execute(cancel, &[]).await.unwrap();
    assert_eq!(committing.await.unwrap(), Err(StoreError::OutcomeUnknown));

    // An equal change conflicts with a record that may be lost: it must wait for the standby too before it says so.
    let (waiting, second) = (Arc::clone(&store), put(&name));
    let mut retrying = tokio::spawn(async move { waiting.commit(second).await });
    while waiting_for_standby(&client).await == 0 {}
    assert!(futures_util::poll!(&mut retrying).is_pending());
    set(&server, &client, "synchronous_standby_names", "").await;
    assert!(matches!(retrying.await.unwrap(), Ok(Outcome::Conflict { .. })));
}

#[tokio::test]
async fn a_commit_that_waits_for_an_unavailable_standby_times_out_after_ten_seconds() {
    let (server, client) = server().await;
    let store = PostgresStore::open(Options::new(server.url())).await.unwrap();
    set(&server, &client, "synchronous_standby_names", "nobody").await;
    let mut attempt = 0;
    let waited = loop {
        attempt += 1;
        let began = tokio::time::Instant::now();
        match store.commit(put(&format!("r{attempt}"))).await {
            // The server applies the setting after a while.
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error, StoreError::OutcomeUnknown);
                break began.elapsed();
            }
        }
    };
    assert!((9..15).contains(&waited.as_secs()), "{waited:?}");
    // Without the standby commits succeed again.
    set(&server, &client, "synchronous_standby_names", "").await;
    assert!(matches!(store.commit(put("after")).await, Ok(Outcome::Committed { .. })));
}

#[tokio::test]
async fn a_server_that_became_unsafe_is_not_written_to_by_new_connections() {
    let (server, client) = server().await;
    let store = PostgresStore::open(Options { writers: 1, ..Options::new(server.url()) }).await.unwrap();
    assert!(matches!(store.commit(put("before")).await, Ok(Outcome::Committed { .. })));
    set(&server, &client, "synchronous_commit", "off").await;
    // As after a failover: all connections are new.
    let terminate =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'countersign'";
    let mut refused = None;
    for attempt in 0..50 {
        client.execute(terminate, &[]).await.unwrap();
        match store.commit(put(&format!("r{attempt}"))).await {
            Err(StoreError::Unavailable(cause)) if cause.to_string().contains("synchronous_commit") => {
                refused = Some(cause);
                break;
            }
            _ => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    }
    assert!(refused.is_some());
}

#[tokio::test]
async fn with_root_certificates_connections_are_encrypted_and_the_server_is_checked() {
    let (server, client) = server().await;
    // The server creates its own certificate, in its data folder.
    let openssl = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout server.key -out server.crt";
    client.batch_execute(&format!("COPY (SELECT 1) TO PROGRAM '{openssl} 2>&1'")).await.unwrap();
    client.batch_execute("COPY (SELECT 1) TO PROGRAM 'chmod 600 server.key'").await.unwrap();
    set(&server, &client, "ssl", "on").await;
    let certificate: String =
        client.query_one("SELECT pg_read_file('server.crt')", &[]).await.unwrap().get(0);
    let folder = std::env::temp_dir().join(format!("countersign-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (good, empty) = (folder.join("good.pem"), folder.join("empty.pem"));
    std::fs::write(&good, certificate).unwrap();
    std::fs::write(&empty, "").unwrap();

    let by_name = server.url().replace("host=127.0.0.1", "host=localhost hostaddr=127.0.0.1");
    let options = |url: &str, file| Options { root_certificates: Some(file), ..Options::new(url) };
    let store = PostgresStore::open(options(&by_name, good.clone())).await.unwrap();
    assert!(matches!(store.commit(put("r")).await, Ok(Outcome::Committed { .. })));
    let unencrypted = client
        .query_one(
            "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
             WHERE a.application_name = 'countersign' AND NOT s.ssl",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(unencrypted.get::<_, i64>(0), 0, "every connection is encrypted");

    let other_name = server.url().replace("host=127.0.0.1", "host=elsewhere.example hostaddr=127.0.0.1");
    assert!(PostgresStore::open(options(&other_name, good)).await.is_err(), "another name");
    let refused = PostgresStore::open(options(&by_name, empty)).await;
    assert!(matches!(refused, Err(OpenError::RootCertificates { .. })), "no certificate");
    std::fs::remove_dir_all(folder).unwrap();
}
