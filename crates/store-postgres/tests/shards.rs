//! Databases that become shards, and every row of a tenant that moves between them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use countersign_core::{
    model::channels::NodeId,
    notify::LocalDoorbell,
    store::{
        AuditRow, CargoPosition, Change, Epoch, Guard, Key, Kind, Mailbox, Mark, MarkKind, NewDelivery,
        Outcome, PayloadId, Put, Relocation as _, Residence, ResidenceState, Shard, Store as _, StoreError,
        error_chain,
    },
};
use countersign_store_postgres::{Options, PostgresStore};
use countersign_store_sharded::{
    MoveError, Moved, OpenError, Options as ShardOptions, Part, ShardedStore, check_members,
};
use countersign_testkit::{gateway_suite::world::gateway, postgres::Postgres};
use countersign_wire::{id::TenantId, msg_type::MsgType, timestamp::Timestamp};
use tokio_postgres::{Client, NoTls};

async fn server() -> Postgres {
    tokio::task::spawn_blocking(Postgres::start).await.unwrap()
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A new database of a server; its connection string.
async fn database(server: &Postgres, name: &str) -> String {
    connect(&server.url()).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    // The last of two settings counts.
    format!("{} dbname={name}", server.url())
}

async fn open(url: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(Options::new(url)).await.unwrap())
}

async fn sharded(
    store_id: &str,
    shards: &[(&str, &Arc<PostgresStore>)],
) -> Result<Arc<ShardedStore>, OpenError> {
    let part = |(name, store): &(&str, &Arc<PostgresStore>)| {
        ((*name).to_owned(), Part::Open(Arc::<PostgresStore>::clone(store)))
    };
    let options = ShardOptions { believed_for: Duration::from_millis(400), ..ShardOptions::default() };
    ShardedStore::open(shards.iter().map(part).collect(), store_id, options).await
}

fn tenant(name: &str) -> TenantId {
    name.parse().unwrap()
}

fn put(of: &TenantId) -> Change {
    let mut change = Change::new(of.clone());
    change.puts.push(Put { key: Key::new(Kind::Exchange, "r"), content: "x".into() });
    change
}

#[tokio::test]
async fn tenants_stay_in_the_database_that_becomes_the_first_shard() {
    let server = server().await;
    let (first, second) = (open(&server.url()).await, open(&database(&server, "second").await).await);
    let names: Vec<TenantId> = (0..20).map(|number| tenant(&format!("t-{number}"))).collect();
    first.commit(put(&names[0])).await.unwrap();
    let store = sharded("cell", &[("one", &first), ("two", &second)]).await.unwrap();
    assert!(names.iter().all(|name| store.shard_of(name) == Shard(0)), "new ones too, unless they are moved");
    // One that has nothing yet is moved to where it shall be.
    assert!(matches!(store.move_tenant(&names[7], Shard(1), &|_| {}).await, Ok(Moved::Arrived(_))));
    let again = sharded("other", &[("one", &first), ("two", &second)]).await.unwrap();
    assert_eq!(again.shard_of(&names[7]), Shard(1));
    assert!(matches!(again.commit(put(&names[7])).await, Ok(Outcome::Committed { .. })));
    assert_eq!(second.tenants(Shard(0), None, 10).await.unwrap(), [names[7].clone()]);
    // A third is added; it has nobody until somebody is moved to it.
    let third = open(&database(&server, "third").await).await;
    let all = [("one", &first), ("two", &second), ("three", &third)];
    let three = sharded("other", &all).await.unwrap();
    assert_eq!((three.shard_of(&names[3]), three.shard_of(&names[7])), (Shard(0), Shard(1)));
    three.move_tenant(&names[7], Shard(2), &|_| {}).await.unwrap();
    let missing = sharded("other", &all[..2]).await;
    assert!(matches!(missing, Err(OpenError::Missing { missing: 2 })), "a tenant is on it");
    // A node that was started with two refuses what it can't reach, and nothing else.
    let until = tokio::time::Instant::now() + Duration::from_secs(20);
    while again.shard_of(&names[7]) != Shard(2) {
        assert!(tokio::time::Instant::now() < until, "a node does not notice");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refused = again.commit(put(&names[7])).await.unwrap_err();
    assert!(error_chain(&refused).contains("shard number 3"), "{}", error_chain(&refused));
    assert!(again.commit(put(&names[0])).await.is_ok());
}

#[tokio::test]
async fn a_database_that_is_something_else_is_no_shard() {
    let server = server().await;
    let (one, two) = (open(&server.url()).await, open(&database(&server, "two").await).await);
    sharded("cell", &[("one", &one), ("two", &two)]).await.unwrap();
    let swapped = sharded("cell", &[("two", &two), ("one", &one)]).await;
    assert!(matches!(swapped, Err(OpenError::OtherShard { .. })));
    let renamed = sharded("cell", &[("one", &one), ("zwei", &two)]).await;
    assert!(matches!(renamed, Err(OpenError::OtherShard { .. })));
    let twice = sharded("cell", &[("one", &one), ("two", &two), ("three", &two)]).await;
    assert!(matches!(twice, Err(OpenError::OtherShard { .. })));
    assert!(matches!(sharded("cell", &[("one", &one)]).await, Err(OpenError::Missing { missing: 1 })));
    let used = open(&database(&server, "used").await).await;
    used.commit(put(&tenant("acme"))).await.unwrap();
    let not_new = sharded("cell", &[("one", &one), ("two", &two), ("three", &used)]).await;
    assert!(matches!(not_new, Err(OpenError::NotNew { .. })));
    let other = open(&database(&server, "other").await).await;
    sharded("another", &[("one", &used), ("two", &other)]).await.unwrap();
    assert!(matches!(
        sharded("cell", &[("one", &one), ("two", &other)]).await,
        Err(OpenError::OtherStore { .. })
    ));
}

#[tokio::test]
async fn a_new_database_is_not_taken_for_a_shard_that_is_lost() {
    let server = server().await;
    let (one, two) = (open(&server.url()).await, open(&database(&server, "two").await).await);
    // Setting them up is interrupted, and goes on.
    let used = open(&database(&server, "used").await).await;
    used.commit(put(&tenant("acme"))).await.unwrap();
    sharded("ours", &[("one", &one), ("two", &used)]).await.unwrap_err();
    sharded("ours", &[("one", &one), ("two", &two)]).await.unwrap();
    let blank = open(&database(&server, "blank").await).await;
    let lost = sharded("ours", &[("one", &one), ("two", &blank)]).await;
    assert!(matches!(&lost, Err(OpenError::Replaced { name }) if name == "two"), "{lost:?}");
    let first = sharded("other", &[("one", &blank), ("two", &two)]).await;
    assert!(matches!(&first, Err(OpenError::FirstIsNew { other, .. }) if other == "two"), "{first:?}");
    assert_eq!(blank.membership().await, Ok(None));
    assert!(blank.tenants(Shard(0), None, 1).await.unwrap().is_empty());
    // The same is said without changing anything, as far as the databases know it.
    let listed = async |listed: &[(&str, &Arc<PostgresStore>)]| {
        let mut members = Vec::new();
        for (name, store) in listed {
            members.push(((*name).to_owned(), store.membership().await.unwrap()));
        }
        check_members(&members)
    };
    assert!(listed(&[("one", &one), ("two", &two), ("three", &blank)]).await.is_ok());
    assert!(matches!(listed(&[("one", &blank), ("two", &two)]).await, Err(OpenError::FirstIsNew { .. })));
    assert!(matches!(listed(&[("one", &one)]).await, Err(OpenError::Missing { missing: 1 })));
    assert!(matches!(listed(&[("two", &two), ("one", &one)]).await, Err(OpenError::OtherShard { .. })));
    let new = Options::new(database(&server, "new").await);
    assert_eq!(PostgresStore::peek_membership(&new).await.unwrap(), None);
    let known = PostgresStore::peek_membership(&Options::new(server.url())).await.unwrap();
    assert_eq!(known, one.membership().await.unwrap());
    // The next number is free.
    sharded("ours", &[("one", &one), ("two", &two), ("three", &blank)]).await.unwrap();
    sharded("ours", &[("one", &one), ("two", &two)]).await.unwrap();
}

#[tokio::test]
async fn a_database_on_which_nodes_run_is_not_new() {
    let server = server().await;
    let (one, two) = (open(&server.url()).await, open(&database(&server, "two").await).await);
    let nodes = Shard(0).nodes_tenant().unwrap();
    one.commit(put(&nodes)).await.unwrap();
    let blank = open(&database(&server, "blank").await).await;
    let not_new = sharded("ours", &[("one", &blank), ("two", &one)]).await;
    assert!(matches!(not_new, Err(OpenError::NotNew { .. })));
    let store = sharded("ours", &[("one", &one), ("two", &two)]).await.unwrap();
    let is_on_first = |number| store.shard_of(&tenant(&format!("t-{number}"))) == Shard(0);
    assert!((0..20).all(is_on_first), "nodes that know no shards write there");
}

#[tokio::test]
async fn all_must_answer_when_they_are_set_up_and_one_of_three_may_be_away_when_a_tenant_moves() {
    let server = server().await;
    let (one, two) = (open(&server.url()).await, open(&database(&server, "two").await).await);
    let three = open(&database(&server, "three").await).await;
    let with_third_away = async || {
        let away =
            Part::Away(Box::new(|| Box::pin(async { Err(StoreError::unavailable("the test says so")) })));
        let parts = [("one", Part::Open(one.clone())), ("two", Part::Open(two.clone())), ("three", away)];
        let options = ShardOptions { believed_for: Duration::from_millis(400), ..ShardOptions::default() };
        let parts = parts.into_iter().map(|(name, part)| (name.to_owned(), part));
        ShardedStore::open(parts.collect(), "ours", options).await
    };
    let refused = with_third_away().await;
    assert!(matches!(&refused, Err(OpenError::SetUpWithout { name }) if name == "three"), "{refused:?}");
    assert_eq!(one.membership().await, Ok(None));
    sharded("ours", &[("one", &one), ("two", &two), ("three", &three)]).await.unwrap();
    let store = with_third_away().await.unwrap();
    let names = (0..100).map(|number| tenant(&format!("t-{number}")));
    let moved = names.into_iter().find(|name| store.shard_of(name) == Shard(0)).unwrap();
    let node = gateway(store.clone(), &LocalDoorbell::default(), 1);
    assert_eq!(node.nodes_without(Shard(1), &moved).await.unwrap(), []);
    assert!(node.nodes_without(Shard(2), &moved).await.is_err(), "it does not say who uses it");
    assert!(matches!(store.move_tenant(&moved, Shard(1), &|_| {}).await, Ok(Moved::Arrived(_))));
    // A node that uses the old shard and not the new one would lose it.
    let old = gateway(one.clone(), &LocalDoorbell::default(), 2);
    old.renew_lease(&NodeId("old".to_owned())).await.unwrap();
    let other = (0..100).map(|number| tenant(&format!("t-{number}")));
    let other = other.into_iter().filter(|name| store.shard_of(name) == Shard(0)).nth(1).unwrap();
    let without = node.nodes_without(Shard(1), &other).await.unwrap();
    assert_eq!(without, [NodeId("old".to_owned())]);
}

#[tokio::test]
async fn a_tenant_on_its_way_to_one_shard_is_not_moved_to_a_third() {
    let server = server().await;
    let (one, two) = (open(&server.url()).await, open(&database(&server, "two").await).await);
    let three = open(&database(&server, "three").await).await;
    let acme = tenant("acme");
    one.commit(put(&acme)).await.unwrap();
    let store = sharded("ours", &[("one", &one), ("two", &two), ("three", &three)]).await.unwrap();
    two.change_residence(&acme, None, ARRIVING).await.unwrap();
    one.change_residence(&acme, None, LEAVING).await.unwrap();
    let refused = store.move_tenant(&acme, Shard(2), &|_| {}).await;
    let is_on_its_way =
        |error: &MoveError| matches!(error, MoveError::OnItsWay { from, to } if from == "one" && to == "two");
    assert!(refused.as_ref().is_err_and(is_on_its_way), "{refused:?}");
    assert!(matches!(store.move_tenant(&acme, Shard(1), &|_| {}).await, Ok(Moved::Arrived(_))));
    // What the first keeps of the others is in nobody's way.
    for shard in [0, 1, 2].map(Shard) {
        let nodes = shard.nodes_tenant().unwrap();
        assert!(matches!(store.commit(put(&nodes)).await, Ok(Outcome::Committed { .. })), "{nodes}");
        assert!(matches!(store.move_tenant(&nodes, Shard(1), &|_| {}).await, Err(MoveError::OfNodes)));
    }
}

#[tokio::test]
async fn programs_from_before_shards_do_not_open_one() {
    let server = server().await;
    let (one, two) = (open(&server.url()).await, open(&database(&server, "two").await).await);
    let client = connect(&server.url()).await;
    let oldest = async || -> i32 {
        client.query_one("SELECT max(oldest_program) FROM migration", &[]).await.unwrap().get(0)
    };
    assert_eq!(oldest().await, 1);
    sharded("cell", &[("one", &one), ("two", &two)]).await.unwrap();
    assert_eq!(oldest().await, 4);
}

/// Every row of a tenant in every table, as text and in order; what differs by database is left out.
async fn rows(client: &Client, tenant: &TenantId) -> Vec<String> {
    let tables = client
        .query(
            "SELECT table_name::text FROM information_schema.columns WHERE table_schema = 'public' \
             AND column_name = 'tenant' AND table_name NOT LIKE 'audit\\__%' \
             AND table_name NOT IN ('noted', 'residence', 'stored') ORDER BY 1",
            &[],
        )
        .await
        .unwrap();
    let mut all = Vec::new();
    for table in tables {
        let table: String = table.get(0);
        let select = format!(
            "SELECT (to_jsonb(t) - 'seq')::text FROM \"{table}\" t WHERE tenant = $1 ORDER BY {}",
            if table == "audit" { "at, seq" } else { "1" }
        );
        let found = client.query(&select, &[&tenant.as_str()]).await.unwrap();
        all.extend(found.iter().map(|row| format!("{table} {}", row.get::<_, String>(0))));
    }
    all
}

#[tokio::test]
async fn every_row_of_a_tenant_moves_and_none_of_another() {
    let server = server().await;
    let urls = [server.url(), database(&server, "two").await];
    let (one, two) = (open(&urls[0]).await, open(&urls[1]).await);
    let clients = [connect(&urls[0]).await, connect(&urls[1]).await];
    let store = sharded("cell", &[("one", &one), ("two", &two)]).await.unwrap();
    let of_first = |number: &u32| store.shard_of(&tenant(&format!("t-{number}"))) == Shard(0);
    let [moved, stays] = (0..100).filter(of_first).take(2).collect::<Vec<_>>()[..] else { unreachable!() };
    let [moved, stays] = [moved, stays].map(|number| tenant(&format!("t-{number}")));
    // More than fits into one part, and rows that are hard to write down.
    for of in [&moved, &stays] {
        for number in 0..300_u32 {
            let key = Key::new(Kind::Exchange, format_args!("it's \"{number}\" \\ {{}} ü"));
            let payload = PayloadId(u128::from(number) << 64 | u128::from(of == &stays));
            let mut change = Change::new(of.clone());
            change.guards.push(Guard::Absent(key.clone()));
            change.puts.push(Put { key: key.clone(), content: vec![0, 255, b'\'', b'\\'].into() });
            change.payloads.push((payload, vec![number.to_le_bytes()[0]; 10_000].into()));
            change.deliveries.push(NewDelivery {
                mailbox: Mailbox::Shared,
                msg_id: format!("m-{number}").parse().unwrap(),
                msg_type: MsgType::ApprovalRequest,
                subject: key.clone(),
                payload: (number % 2 == 0).then_some(payload),
                until: Timestamp::from_unix_micros(i64::from(number)),
            });
            change.due.push((Timestamp::from_unix_micros(4_000_000_000_000_000), key.clone()));
            change.audit.push(AuditRow { subject: key, event: format!("{{\"did\":\"{number}\"}}").into() });
            assert!(matches!(store.commit(change).await, Ok(Outcome::Committed { .. })));
        }
        let mut change = Change::new(of.clone());
        change.marks.push(Mark {
            mailbox: Mailbox::Shared,
            number: 3,
            subject: Key::new(Kind::Exchange, "it's \"2\" \\ {} ü"),
            reader: "ada".parse().unwrap(),
            kind: MarkKind::Acknowledged,
        });
        store.commit(change).await.unwrap();
    }
    // Written, and never committed: it does not move.
    let pending = "WITH p AS (INSERT INTO payload (id, tenant, content) VALUES ('\\x01', $1, '\\x01')) \
        INSERT INTO payload_pending VALUES ('\\x01', 0)";
    let (before, others) = (rows(&clients[0], &moved).await, rows(&clients[0], &stays).await);
    let bytes = store.stored_bytes(&moved).await.unwrap();
    clients[0].execute(pending, &[&moved.as_str()]).await.unwrap();
    assert_eq!(
        before.len(),
        300 * 5 + 2,
        "records, payloads, deliveries, due times, audit; a mailbox and a mark"
    );
    let copied = store.move_tenant(&moved, Shard(1), &|_| {}).await.unwrap();
    assert!(matches!(copied, Moved::Arrived(progress) if progress.rows == before.len() as u64), "{copied:?}");
    assert_eq!(rows(&clients[1], &moved).await, before);
    assert_eq!(rows(&clients[0], &moved).await, Vec::<String>::new());
    assert_eq!(rows(&clients[0], &stays).await, others);
    assert_eq!(two.stored_bytes(&moved).await.unwrap(), bytes);
    assert_eq!(one.stored_bytes(&moved).await.unwrap(), 0);
    assert_eq!(one.residence(&stays).await, Ok(None));
}

#[tokio::test]
async fn what_a_backup_brings_back_of_a_tenant_that_has_left_is_deleted() {
    let server = server().await;
    let (one, two) = (open(&server.url()).await, open(&database(&server, "two").await).await);
    let moved = tenant("acme");
    one.commit(put(&moved)).await.unwrap();
    let store = sharded("ours", &[("one", &one), ("two", &two)]).await.unwrap();
    store.move_tenant(&moved, Shard(1), &|_| {}).await.unwrap();
    // As the first database was before.
    let client = connect(&server.url()).await;
    client.batch_execute("DELETE FROM residence").await.unwrap();
    assert!(matches!(one.commit(put(&moved)).await, Ok(Outcome::Committed { .. })));
    let restored = sharded("ours", &[("one", &one), ("two", &two)]).await.unwrap();
    assert_eq!(restored.shard_of(&moved), Shard(1), "the newest counts");
    assert_eq!(restored.move_tenant(&moved, Shard(1), &|_| {}).await.unwrap(), Moved::WasThere);
    assert_eq!(rows(&client, &moved).await, Vec::<String>::new());
    assert_eq!(one.commit(put(&moved)).await, Err(StoreError::Moved));
    assert!(matches!(restored.commit(put(&moved)).await, Ok(Outcome::Committed { .. })));
}

#[tokio::test]
async fn a_tenant_that_a_restored_shard_has_forgotten_is_not_taken_for_one_that_moves() {
    let server = server().await;
    let urls = [server.url(), database(&server, "two").await];
    let (one, two) = (open(&urls[0]).await, open(&urls[1]).await);
    let moved = tenant("acme");
    one.commit(put(&moved)).await.unwrap();
    let store = sharded("ours", &[("one", &one), ("two", &two)]).await.unwrap();
    store.move_tenant(&moved, Shard(1), &|_| {}).await.unwrap();
    // As the second database was before.
    let forget = "DELETE FROM residence; DELETE FROM record WHERE tenant = 'acme'";
    connect(&urls[1]).await.batch_execute(forget).await.unwrap();
    for to in [Shard(0), Shard(1)] {
        let refused = store.move_tenant(&moved, to, &|_| {}).await;
        assert!(matches!(&refused, Err(MoveError::Forgotten { to, .. }) if to == "two"), "{refused:?}");
    }
}

#[tokio::test]
async fn all_residences_are_read_and_one_that_is_damaged_is_of_its_tenant_alone() {
    let server = server().await;
    let (one, two) = (open(&server.url()).await, open(&database(&server, "two").await).await);
    let client = connect(&server.url()).await;
    let store = sharded("ours", &[("one", &one), ("two", &two)]).await.unwrap();
    drop(store);
    // More than one page. Each is on the second shard, whatever its name.
    let left =
        "INSERT INTO residence SELECT 'gone-' || n, 1, 4, 1, n + 100, '' FROM generate_series(1, 2500) n";
    client.batch_execute(left).await.unwrap();
    let page = one.residences(0).await.unwrap();
    assert_eq!((page.changes.len(), page.read_to), (2_501, 2_600), "with the shard that has joined");
    assert_eq!(one.residences(page.read_to).await.unwrap().changes, []);
    client.batch_execute("UPDATE residence SET state = 9 WHERE tenant = 'gone-1200'").await.unwrap();
    let store = sharded("ours", &[("one", &one), ("two", &two)]).await.unwrap();
    for number in [1, 1_199, 1_201, 2_500] {
        assert_eq!(store.shard_of(&tenant(&format!("gone-{number}"))), Shard(1), "{number}");
    }
    let damaged = tenant("gone-1200");
    assert_eq!(store.load(&damaged, &[]).await.map(drop), Err(StoreError::Moved));
    assert_eq!(store.commit(put(&damaged)).await.map(drop), Err(StoreError::Moved));
}

#[tokio::test]
async fn versions_on_the_new_shard_are_above_those_of_one_that_is_far_ahead() {
    let server = server().await;
    let urls = [server.url(), database(&server, "two").await];
    let (one, two) = (open(&urls[0]).await, open(&urls[1]).await);
    let clients = [connect(&urls[0]).await, connect(&urls[1]).await];
    let newest = async |client: &Client| -> i64 {
        client.query_one("SELECT last_value FROM record_incarnation", &[]).await.unwrap().get(0)
    };
    let acme = tenant("acme");
    one.commit(put(&acme)).await.unwrap();
    clients[0].batch_execute("SELECT setval('record_incarnation', 50000000)").await.unwrap();
    let store = sharded("ours", &[("one", &one), ("two", &two)]).await.unwrap();
    store.move_tenant(&acme, Shard(1), &|_| {}).await.unwrap();
    assert!(newest(&clients[1]).await > 50_000_000);
    // Nobody sets it back, and two movers at once do not either.
    let (low, high) = (60_000_000_u64 << 16, 70_000_000_u64 << 16);
    let raised = tokio::join!(two.raise_version_floor(high), two.raise_version_floor(low));
    assert_eq!(raised, (Ok(()), Ok(())));
    assert!(newest(&clients[1]).await >= 70_000_000);
    let mut holder = connect(&urls[1]).await;
    let other = holder.transaction().await.unwrap();
    other.batch_execute(&format!("SELECT pg_advisory_xact_lock({RAISING})")).await.unwrap();
    let waits = tokio::spawn({
        let two = Arc::clone(&two);
        async move { two.raise_version_floor(80_000_000 << 16).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waits.is_finished(), "another mover is setting it");
    other.commit().await.unwrap();
    assert_eq!(waits.await.unwrap(), Ok(()));
}

/// The advisory lock of whoever raises the versions of new records.
const RAISING: i64 = 0x00c0_0a7e_2516_0004;

/// The advisory lock of a tenant, by the statement with which it is computed.
const LOCK: &str = "('x' || left(encode(sha256(convert_to('acme', 'UTF8')), 'hex'), 16))::bit(64)::bigint";

const LEAVING: Residence = Residence { epoch: Epoch(1), state: ResidenceState::Leaving { to: Shard(1) } };
const ARRIVING: Residence = Residence { epoch: Epoch(1), state: ResidenceState::Arriving { from: Shard(0) } };

#[tokio::test]
async fn a_tenant_leaves_after_the_changes_that_are_in_progress_and_before_all_others() {
    let server = server().await;
    let (store, acme) = (open(&server.url()).await, tenant("acme"));
    // A transaction that has found the tenant here, and writes.
    let mut client = connect(&server.url()).await;
    let writer = client.transaction().await.unwrap();
    writer.batch_execute(&format!("SELECT pg_advisory_xact_lock_shared({LOCK})")).await.unwrap();
    let leaves = tokio::spawn({
        let (store, acme) = (Arc::clone(&store), acme.clone());
        async move { store.change_residence(&acme, None, LEAVING).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!leaves.is_finished(), "it waits for the transaction");
    assert_eq!(store.residence(&acme).await, Ok(None));
    writer.commit().await.unwrap();
    assert_eq!(leaves.await.unwrap(), Ok(Some(LEAVING)));
    assert_eq!(store.commit(put(&acme)).await, Err(StoreError::Moved));
    // A change that waits for a residence to change sees what it has become.
    let here = Residence { epoch: Epoch(2), state: ResidenceState::Here };
    assert_eq!(store.change_residence(&acme, Some(LEAVING), here).await, Ok(Some(here)));
    let mover = client.transaction().await.unwrap();
    mover.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await.unwrap();
    let late = tokio::spawn({
        let (store, acme) = (Arc::clone(&store), acme.clone());
        async move { store.commit_in(Epoch(2), put(&acme)).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!late.is_finished(), "it waits for the mover");
    mover.batch_execute("UPDATE residence SET epoch = 3, state = 2").await.unwrap();
    mover.commit().await.unwrap();
    assert_eq!(late.await.unwrap(), Err(StoreError::Moved));
}

#[tokio::test]
async fn a_part_arrives_once_and_a_mover_that_is_late_deletes_nothing() {
    let server = server().await;
    let (one, two) = (open(&server.url()).await, open(&database(&server, "two").await).await);
    let acme = tenant("acme");
    one.commit(put(&acme)).await.unwrap();
    one.change_residence(&acme, None, LEAVING).await.unwrap();
    let start = CargoPosition::default();
    let cargo = one.unload(&acme, start.clone()).await.unwrap().next().await.unwrap().unwrap();
    let load = async |epoch, after| two.load_cargo(&acme, epoch, after, &cargo).await;
    assert_eq!(load(Epoch(1), &start).await, Err(StoreError::Moved), "it does not arrive");
    assert_eq!(two.change_residence(&acme, None, ARRIVING).await, Ok(Some(ARRIVING)));
    assert_eq!(load(Epoch(2), &start).await, Err(StoreError::Moved), "with another epoch");
    assert_eq!(two.clear(&acme, ARRIVING, 10).await, Ok(0));
    assert_eq!(load(Epoch(1), &start).await, Ok(()));
    assert_eq!(load(Epoch(1), &start).await, Err(StoreError::Moved), "it is here already");
    assert_eq!(two.arrived(&acme, Epoch(1)).await, Ok(cargo.next.clone()));
    // Another mover has looked before any of it had arrived.
    assert_eq!(two.change_residence(&acme, None, ARRIVING).await, Ok(Some(ARRIVING)));
    assert_eq!(two.clear(&acme, ARRIVING, 10).await, Err(StoreError::Moved));
    assert_eq!(two.arrived(&acme, Epoch(1)).await, Ok(cargo.next.clone()));
    assert_eq!(
        one.clear(&acme, LEAVING, 10).await,
        Err(StoreError::Moved),
        "nothing of a tenant that is only leaving"
    );
    let older = Residence { epoch: Epoch(0), ..LEAVING };
    assert_eq!(
        one.change_residence(&acme, Some(LEAVING), older).await,
        Ok(Some(LEAVING)),
        "an epoch does not go back"
    );
}
