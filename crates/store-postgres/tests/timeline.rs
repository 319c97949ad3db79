//! Which history a store belongs to: the same for all nodes, another one after a promotion.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use countersign_core::store::{Change, Key, Kind, Outcome, Put, Store as _};
use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::postgres::Postgres;
use countersign_wire::id::TenantId;
use tokio_postgres::{Client, NoTls};

async fn server() -> Postgres {
    tokio::task::spawn_blocking(Postgres::start).await.unwrap()
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(Options::new(url)).await.unwrap()
}

fn tenant() -> TenantId {
    "acme".parse().unwrap()
}

async fn write(store: &PostgresStore) -> bool {
    let mut change = Change::new(tenant());
    change.puts.push(Put { key: Key::new(Kind::Policy, "policy"), content: "x".into() });
    matches!(store.commit(change).await, Ok(Outcome::Committed { .. }))
}

async fn read(store: &PostgresStore) -> bool {
    store.load(&tenant(), &[Key::new(Kind::Policy, "policy")]).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promotion_begins_another_timeline_for_those_that_write_and_those_that_only_read() {
    let mut primary = server().await;
    let standby = tokio::task::block_in_place(|| primary.start_standby());
    let url = format!(
        "host=127.0.0.1,127.0.0.1 port={},{} user=postgres dbname=postgres target_session_attrs=read-write",
        primary.port(),
        standby.port()
    );
    let (writing, reading) = (open(&url).await, open(&url).await);
    assert!(write(&writing).await && read(&reading).await);
    let before = writing.timeline();
    assert_ne!(before, 0);
    assert_eq!(reading.timeline(), before, "all nodes agree");

    // A restart alone is the same history.
    tokio::task::block_in_place(|| {
        primary.stop();
        primary.start_again();
    });
    while !write(&writing).await || !read(&reading).await {}
    assert_eq!((writing.timeline(), reading.timeline()), (before, before));

    let client = connect(&standby.url()).await;
    let replayed = "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'";
    while client.query_one(replayed, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
    tokio::task::block_in_place(|| primary.kill());
    client.execute("SELECT pg_promote()", &[]).await.unwrap();
    while !write(&writing).await || !read(&reading).await {}
    let after = writing.timeline();
    assert_ne!(after, before);
    assert_eq!(reading.timeline(), after, "also for one that has written nothing");
    assert_eq!(open(&standby.url()).await.timeline(), after);
}

#[tokio::test]
async fn a_role_without_rights_knows_the_timeline_unless_the_server_hides_it() {
    let server = server().await;
    let superuser = open(&server.url()).await;
    let client = connect(&server.url()).await;
    client.batch_execute("CREATE ROLE plain LOGIN").await.unwrap();
    client.batch_execute("CREATE DATABASE plain OWNER plain").await.unwrap();
    let in_plain = |user: &str| format!("host=127.0.0.1 port={} user={user} dbname=plain", server.port());
    let plain = open(&in_plain("plain")).await;
    assert_eq!(plain.timeline(), superuser.timeline());

    let owner = connect(&in_plain("postgres")).await;
    owner.batch_execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC").await.unwrap();
    let hidden = [open(&in_plain("plain")).await.timeline(), open(&in_plain("plain")).await.timeline()];
    assert!(hidden[0] != 0 && hidden[0] != superuser.timeline(), "{hidden:?}");
    assert_eq!(hidden[0], hidden[1], "as long as the server runs");
}
