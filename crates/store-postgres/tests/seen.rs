//! Guards on records that were only used hold nothing and wait for nobody.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use countersign_core::store::{Change, Guard, Key, Kind, Outcome, Put, Store as _};
use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::postgres::Postgres;
use countersign_wire::id::TenantId;
use futures_util::future::join_all;
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{Client, NoTls};

async fn server() -> Postgres {
    tokio::task::spawn_blocking(Postgres::start).await.unwrap()
}

async fn open(server: &Postgres) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(Options::new(server.url())).await.unwrap())
}

async fn connect(server: &Postgres) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn tenant() -> TenantId {
    "acme".parse().unwrap()
}

fn exchange(id: &str) -> Key {
    Key::new(Kind::Exchange, id)
}

fn policy() -> Key {
    Key::new(Kind::Policy, "policy")
}

fn put(guards: Vec<Guard>, key: &Key) -> Change {
    let mut change = Change::new(tenant());
    change.guards = guards;
    change.puts.push(Put { key: key.clone(), content: "x".into() });
    change
}

async fn committed(store: &PostgresStore, change: Change) -> u64 {
    match store.commit(change).await.unwrap() {
        Outcome::Committed { versions, .. } => versions[0],
        conflict @ Outcome::Conflict { .. } => panic!("{conflict:?}"),
    }
}

fn commit(store: &Arc<PostgresStore>, change: Change) -> JoinHandle<Outcome> {
    let store = Arc::clone(store);
    tokio::spawn(async move { store.commit(change).await.unwrap() })
}

async fn wait_until_one_waits_for_a_lock(client: &Client) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
}

/// Far longer than a commit takes, far shorter than the statement timeout.
const SOON: Duration = Duration::from_secs(4);

#[tokio::test]
async fn commits_of_one_tenant_do_not_wait_for_each_other_at_the_policy_that_they_saw() {
    let server = server().await;
    let (one, other) = (open(&server).await, open(&server).await);
    let (holder, observer) = (connect(&server).await, connect(&server).await);
    let version = committed(&one, put(Vec::new(), &policy())).await;
    committed(&one, put(Vec::new(), &exchange("held"))).await;
    let seen = || vec![Guard::Seen(policy(), version)];

    // One commit has seen the policy and waits in the middle of its transaction.
    holder.batch_execute("BEGIN; SELECT FROM record WHERE id = 'held' FOR UPDATE").await.unwrap();
    let waiting = commit(&one, put(seen(), &exchange("held")));
    wait_until_one_waits_for_a_lock(&observer).await;
    let beside = timeout(SOON, committed(&other, put(seen(), &exchange("beside")))).await;
    assert!(beside.is_ok(), "another node's commit that saw the same policy");
    // Nor does the policy's writer wait.
    let written = timeout(SOON, committed(&other, put(Vec::new(), &policy()))).await;
    assert_eq!(written, Ok(version + 1));
    holder.batch_execute("ROLLBACK").await.unwrap();
    let outcome = waiting.await.unwrap();
    let Outcome::Conflict { current, .. } = outcome else { panic!("it waited: {outcome:?}") };
    assert_eq!(current[0].as_ref().unwrap().version, version + 1, "what was committed meanwhile");

    // And nobody waits for the policy's writer.
    holder.batch_execute("BEGIN; UPDATE record SET content = 'y' WHERE id = 'policy'").await.unwrap();
    let seen = vec![Guard::Seen(policy(), version + 1), Guard::Absent(exchange("new"))];
    let beside = timeout(SOON, committed(&one, put(seen, &exchange("new")))).await;
    assert!(beside.is_ok(), "while the policy is being changed");
}

#[tokio::test]
async fn a_seen_record_that_does_not_exist_is_not_reserved() {
    let server = server().await;
    let store = open(&server).await;
    let (holder, other, observer) = (connect(&server).await, connect(&server).await, connect(&server).await);
    holder.batch_execute("BEGIN; INSERT INTO record VALUES ('acme', 1, 'held', 1, '')").await.unwrap();
    let guards = vec![Guard::Seen(policy(), 0), Guard::Absent(exchange("held"))];
    let waiting = commit(&store, put(guards, &exchange("held")));
    wait_until_one_waits_for_a_lock(&observer).await;
    let insert = "INSERT INTO record VALUES ('acme', $1, 'policy', 1, 'theirs')";
    let kind = Kind::Policy.number();
    let inserted = timeout(SOON, other.execute(insert, &[&kind])).await;
    assert!(inserted.is_ok(), "another node makes it");
    holder.batch_execute("ROLLBACK").await.unwrap();
    let outcome = waiting.await.unwrap();
    let Outcome::Conflict { current, .. } = outcome else { panic!("it waited: {outcome:?}") };
    assert_eq!(current[0].as_ref().unwrap().content, "theirs", "what was committed meanwhile");
    assert_eq!(current[1], None);
}

/// In one batch, whether it inserts anything or only locks.
#[tokio::test]
async fn a_seen_record_that_cannot_be_decoded_is_another_one_and_fails_nobody_else() {
    let server = server().await;
    let options = Options { writers: 1, ..Options::new(server.url()) };
    let store = PostgresStore::open(options).await.unwrap();
    let client = connect(&server).await;
    let there = committed(&store, put(Vec::new(), &exchange("there"))).await;
    let kind = Kind::Policy.number();
    client.execute("INSERT INTO record VALUES ('acme', $1, 'policy', -1, 'x')", &[&kind]).await.unwrap();
    let seen = |version| Guard::Seen(policy(), version);
    for guard in [Guard::Version(exchange("there"), there), Guard::Absent(exchange("new"))] {
        let outcomes = join_all([
            store.commit(put(vec![seen(0), guard.clone()], &exchange("there"))),
            store.commit(put(vec![seen(1), guard.clone()], &exchange("there"))),
            store.commit(put(vec![guard.clone()], &exchange("there"))),
        ])
        .await;
        let committed: Vec<bool> =
            outcomes.iter().map(|outcome| matches!(outcome, Ok(Outcome::Committed { .. }))).collect();
        assert_eq!(committed, [false, false, true], "{guard:?}: {outcomes:?}");
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }
}

/// A version that grows by more than its 16 bits reaches the numbers that later records start with.
#[tokio::test]
async fn a_record_that_was_written_very_often_does_not_reach_the_versions_of_the_next() {
    let server = server().await;
    let store = open(&server).await;
    let client = connect(&server).await;
    let mut first = committed(&store, put(Vec::new(), &policy())).await;
    for _ in 0..3 {
        let last = i64::try_from(first + 65_535).unwrap();
        client.execute("UPDATE record SET version = $1", &[&last]).await.unwrap();
        let newest = committed(&store, put(Vec::new(), &policy())).await;
        assert_eq!(newest, first + 65_536);
        let mut delete = Change::new(tenant());
        delete.deletes.push(policy());
        store.commit(delete).await.unwrap();
        first = committed(&store, put(Vec::new(), &policy())).await;
        assert!(first > newest, "{first} after {newest}");
    }
}

#[tokio::test]
async fn only_a_batch_of_channels_and_presence_does_not_wait_for_the_disk() {
    let server = server().await;
    let (store, client) = (open(&server).await, connect(&server).await);
    client
        .batch_execute(
            "CREATE TABLE said (id text, synchronous_commit text);
             CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO said VALUES (NEW.id, current_setting('synchronous_commit')); RETURN NEW; END $$;
             CREATE TRIGGER say AFTER INSERT ON record FOR EACH ROW EXECUTE FUNCTION say()",
        )
        .await
        .unwrap();
    let mut both = put(Vec::new(), &Key::new(Kind::Presence, "both"));
    both.puts.push(Put { key: exchange("exchange"), content: "x".into() });
    for change in [
        put(Vec::new(), &Key::new(Kind::Channels, "channels")),
        both,
        put(Vec::new(), &Key::new(Kind::Lease, "lease")),
        put(Vec::new(), &Key::new(Kind::Presence, "presence")),
    ] {
        committed(&store, change).await;
    }
    let rows =
        client.query("SELECT id || ' ' || synchronous_commit FROM said ORDER BY id", &[]).await.unwrap();
    let said: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(said, ["both on", "channels off", "exchange on", "lease on", "presence off"]);
}
