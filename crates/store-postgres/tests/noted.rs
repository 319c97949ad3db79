//! Changes whose transactions commit in another order than they began.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use countersign_core::store::{Change, Key, Kind, Noted, Put, Shard, Store as _};
use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::postgres::Postgres;
use tokio_postgres::NoTls;

fn record(id: &str) -> Noted {
    Noted::Record("acme".parse().unwrap(), Key::new(Kind::Credential, id))
}

async fn put(store: &PostgresStore, id: &str) {
    let mut change = Change::new("acme".parse().unwrap());
    change.puts.push(Put { key: Key::new(Kind::Credential, id), content: "x".into() });
    store.commit(change).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_commits_late_is_read_although_later_ones_were_read_before() {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let store = PostgresStore::open(Options::new(server.url())).await.unwrap();
    let (mut client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let since = store.noted(Shard(0), None).await.unwrap().settled;
    let late = client.transaction().await.unwrap();
    let insert = "INSERT INTO record VALUES ('acme', 12, 'late', 1, 'x')";
    late.execute(insert, &[]).await.unwrap();
    put(&store, "first").await;
    let page = store.noted(Shard(0), Some(since)).await.unwrap();
    let found: Vec<&Noted> = page.changes.iter().map(|(noted, _)| noted).collect();
    assert_eq!(found, [&record("first")], "it does not wait for the other");
    assert!(page.settled <= since, "the other may still come");
    late.commit().await.unwrap();
    put(&store, "second").await;
    let page = store.noted(Shard(0), Some(page.settled)).await.unwrap();
    let found: Vec<&Noted> = page.changes.iter().map(|(noted, _)| noted).collect();
    assert_eq!(found, [&record("late"), &record("first"), &record("second")]);
    let last = store.noted(Shard(0), Some(page.settled)).await.unwrap();
    assert_eq!(last.changes, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_cluster_has_noted_is_neither_read_nor_kept() {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let store = PostgresStore::open(Options::new(server.url())).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let restored = "INSERT INTO noted SELECT '4000000000', 'acme', 12, 'restored', 1";
    client.execute(restored, &[]).await.unwrap();
    let since = store.noted(Shard(0), None).await.unwrap().settled;
    assert_eq!(store.noted(Shard(0), Some(since)).await.unwrap().changes, []);
    assert_eq!(store.forget_noted(Shard(0), since, 10).await, Ok(1));
}
