//! Connections are few: 16 nodes fit beside PostgreSQL's default, and authentication waits behind nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use countersign_core::store::{
    Change, DeliveryQuery, Key, Kind, Mailbox, Outcome, PayloadId, Put, Store as _, StoreError, error_chain,
};
use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::postgres::Postgres;
use countersign_wire::id::TenantId;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_postgres::{Client, NoTls};

const NODES: usize = 16;

async fn start() -> Postgres {
    tokio::task::spawn_blocking(Postgres::start).await.unwrap()
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn tenant() -> TenantId {
    "acme".parse().unwrap()
}

fn put(kind: Kind, id: &str, payload: Option<(u128, usize)>) -> Change {
    let mut change = Change::new(tenant());
    change.puts.push(Put { key: Key::new(kind, id), content: "{}".into() });
    change.payloads.extend(payload.map(|(id, size)| (PayloadId(id), Bytes::from(vec![7; size]))));
    change
}

fn inbox() -> DeliveryQuery {
    DeliveryQuery {
        mailbox: Mailbox::Shared,
        after: 0,
        up_to: None,
        limit: 100,
        unless_marked: None,
        only_relevant: true,
    }
}

#[tokio::test]
async fn a_credential_is_read_while_pushes_and_large_bodies_have_all_other_connections() {
    let server = start().await;
    let store = Arc::new(PostgresStore::open(Options::new(server.url())).await.unwrap());
    for kind in [Kind::Credential, Kind::Exchange] {
        store.commit(put(kind, "k", None)).await.unwrap();
    }
    let blocker = connect(&server.url()).await;
    blocker.batch_execute("BEGIN; LOCK TABLE delivery, payload IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let mut waiting_calls = JoinSet::new();
    for number in 0..4 {
        let (reading, writing) = (Arc::clone(&store), Arc::clone(&store));
        waiting_calls.spawn(async move { reading.deliveries(&tenant(), inbox()).await.map(drop) });
        let large = put(Kind::Exchange, &number.to_string(), Some((number, 1 << 20)));
        waiting_calls.spawn(async move { writing.commit(large).await.map(drop) });
    }
    // Another connection: within a transaction the list does not change.
    let watcher = connect(&server.url()).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'countersign' \
                   AND wait_event_type = 'Lock'";
    while watcher.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) < 3 {
        sleep(Duration::from_millis(20)).await;
    }
    let (credential, other) = (Key::new(Kind::Credential, "k"), Key::new(Kind::Exchange, "k"));
    let read = timeout(Duration::from_millis(500), store.load(&tenant(), &[other])).await;
    assert!(read.is_err(), "all others are busy");
    // A read that waits for the lock is ended by the server after 10 s.
    for _ in 0..20 {
        let key = std::slice::from_ref(&credential);
        let read = timeout(Duration::from_secs(8), store.load(&tenant(), key)).await.unwrap();
        assert!(read.unwrap().first().is_some());
    }
    blocker.batch_execute("COMMIT").await.unwrap();
    for result in waiting_calls.join_all().await {
        result.unwrap();
    }
}

#[tokio::test]
async fn sixteen_nodes_work_at_once_beside_the_default_of_postgresql() {
    let server = start().await;
    let watcher = connect(&server.url()).await;
    let limit = watcher.query_one("SHOW max_connections", &[]).await.unwrap().get::<_, String>(0);
    assert_eq!(limit, "100", "the default");
    let mut opening = JoinSet::new();
    for _ in 0..NODES {
        let url = server.url();
        opening.spawn(async move { Arc::new(PostgresStore::open(Options::new(url)).await.unwrap()) });
    }
    let stores = opening.join_all().await;
    let is_over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&is_over);
    let watching = tokio::spawn(async move {
        let used = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'countersign'";
        let mut used_at_once = 0;
        while !ended.load(Ordering::Relaxed) {
            used_at_once = used_at_once.max(watcher.query_one(used, &[]).await.unwrap().get::<_, i64>(0));
            sleep(Duration::from_millis(10)).await;
        }
        used_at_once
    });
    let mut work = JoinSet::new();
    for (node, store) in stores.iter().enumerate() {
        for task in 0..8_usize {
            let store = Arc::clone(store);
            work.spawn(async move {
                for round in 0..5_usize {
                    let id = format!("{node} {task} {round}");
                    let payload = (task == 0).then_some(((node * 100 + round) as u128, 100 << 10));
                    let outcome = store.commit(put(Kind::Exchange, &id, payload)).await.unwrap();
                    assert!(matches!(outcome, Outcome::Committed { .. }));
                    let keys = [Key::new(Kind::Exchange, &id), Key::new(Kind::Credential, "k")];
                    assert!(store.load(&tenant(), &keys).await.unwrap().first().is_some());
                    store.load(&tenant(), &keys[1..]).await.unwrap();
                    store.deliveries(&tenant(), inbox()).await.unwrap();
                }
            });
        }
    }
    work.join_all().await;
    is_over.store(true, Ordering::Relaxed);
    let used_at_once = watching.await.unwrap();
    println!("{used_at_once} connections of {NODES} nodes");
    assert!(used_at_once <= 96, "{used_at_once}");
    assert!(used_at_once > 64, "{used_at_once}: the nodes hardly worked at once");
}

#[tokio::test]
async fn without_a_connection_left_the_error_says_what_to_do() {
    let server = start().await;
    let operator = connect(&server.url()).await;
    // A role has a limit of its own, with the same error as the server's.
    operator.batch_execute("CREATE ROLE limited LOGIN CONNECTION LIMIT 3").await.unwrap();
    operator.batch_execute("CREATE DATABASE limited OWNER limited").await.unwrap();
    let url = format!("{} user=limited dbname=limited", server.url());
    let store = Arc::new(PostgresStore::open(Options::new(&url)).await.unwrap());
    let _others = [connect(&url).await, connect(&url).await];
    store.load(&tenant(), &[Key::new(Kind::Exchange, "r")]).await.unwrap();
    let remedy = "Lower store.connections or raise max_connections";
    let refused = store.commit(put(Kind::Exchange, "r", None)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "503 with Retry-After: {refused:?}");
    assert!(error_chain(&refused).contains(remedy), "{}", error_chain(&refused));
    let refused = PostgresStore::open(Options::new(&url)).await.unwrap_err();
    assert!(error_chain(&refused).contains(remedy), "{}", error_chain(&refused));
    // A read waits for the connection that is there, or says so.
    operator.batch_execute("ALTER ROLE limited CONNECTION LIMIT 10").await.unwrap();
    store.commit(put(Kind::Exchange, "r", None)).await.unwrap();
}
