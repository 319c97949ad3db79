//! Changes that share a transaction with one that loses a race against another node.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use countersign_core::store::{
    Change, Guard, Key, Kind, Mailbox, Mark, MarkKind, NewDelivery, Outcome, PayloadId, Put, Record, Removal,
    Store as _,
};
use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::postgres::Postgres;
use countersign_wire::{msg_type::MsgType, timestamp::Timestamp};
use futures_util::future::join_all;
use tokio::{
    task::JoinSet,
    time::{Instant, interval, sleep},
};
use tokio_postgres::{Client, NoTls};

async fn connect(server: &Postgres) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A first submission: the idempotency key is guarded before the exchange.
fn submit(tenant: &str, id: &str, idempotency: &str) -> Change {
    let mut change = Change::new(tenant.parse().unwrap());
    for key in [Key::new(Kind::Idempotency, idempotency), Key::new(Kind::Exchange, id)] {
        change.guards.push(Guard::Absent(key.clone()));
        change.puts.push(Put { key, content: "ours".into() });
    }
    change
}

/// Another node that has inserted the exchange and not yet committed.
async fn insert_without_commit(client: &Client, id: &str) {
    let insert = format!("BEGIN; INSERT INTO record VALUES ('acme', 1, '{id}', 1, 'theirs')");
    client.batch_execute(&insert).await.unwrap();
}

async fn wait_until_one_waits_for_a_lock(client: &Client) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
}

#[tokio::test]
async fn the_neighbours_of_a_lost_race_are_committed_together_in_the_first_attempt() {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let options = Options { writers: 1, ..Options::new(server.url()) };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let (first, second, observer) = (connect(&server).await, connect(&server).await, connect(&server).await);
    insert_without_commit(&first, "first").await;
    insert_without_commit(&second, "contested").await;

    // While the writer waits for the first one, the others become one batch.
    let mut commits = JoinSet::new();
    let mut commit = |id: String| {
        let (store, change) = (Arc::clone(&store), submit("acme", &id, &id));
        commits.spawn(async move { (id, store.commit(change).await.unwrap()) });
    };
    commit("first".to_owned());
    wait_until_one_waits_for_a_lock(&observer).await;
    for at in 0..20 {
        commit(format!("neighbour {at}"));
        if at == 10 {
            commit("contested".to_owned());
        }
    }
    tokio::task::yield_now().await;
    first.batch_execute("ROLLBACK").await.unwrap();
    let committed = "SELECT count(*) FROM record WHERE id = 'first' AND kind = 1";
    while observer.query_one(committed, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
    wait_until_one_waits_for_a_lock(&observer).await;
    second.batch_execute("COMMIT").await.unwrap();

    for (id, outcome) in commits.join_all().await {
        match id.as_str() {
            "contested" => {
                let theirs = Record {
                    key: Key::new(Kind::Exchange, "contested"),
                    version: 1,
                    content: "theirs".into(),
                };
                let Outcome::Conflict { current, .. } = outcome else { panic!("{outcome:?}") };
                assert_eq!(current, [None, Some(theirs)]);
            }
            _ => assert!(matches!(outcome, Outcome::Committed { .. }), "{id}: {outcome:?}"),
        }
    }
    let by_transaction = "SELECT count(*), count(DISTINCT xmin::text) FROM record WHERE id LIKE 'neighbour%'";
    let row = observer.query_one(by_transaction, &[]).await.unwrap();
    let (records, transactions): (i64, i64) = (row.get(0), row.get(1));
    assert_eq!((records, transactions), (40, 1), "all neighbours in one transaction");
    let left = "SELECT count(*) FROM record WHERE content = '' OR (id = 'contested' AND kind = 10)";
    assert_eq!(observer.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0, "nothing of the loser");
}

/// What the batch inserts before it knows who writes it must become what the first satisfied change writes, or go.
#[tokio::test]
async fn a_new_record_of_a_batch_is_what_its_first_satisfied_change_writes() {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let options = Options { writers: 1, ..Options::new(server.url()) };
    let store = PostgresStore::open(options).await.unwrap();
    let key = |id: &str| Key::new(Kind::Exchange, id);
    let change = |guards: Vec<Guard>, puts: &[(&str, &'static str)], deletes: &[&str]| {
        let mut change = Change::new("acme".parse().unwrap());
        change.guards = guards;
        change.puts =
            puts.iter().map(|(id, content)| Put { key: key(id), content: (*content).into() }).collect();
        change.deletes = deletes.iter().map(|id| key(id)).collect();
        change
    };
    let absent = |id: &str| Guard::Absent(key(id));
    let version = |id: &str, version| Guard::Version(key(id), version);
    let past = store.now().await.unwrap();
    // Polled in order before the writer runs, so they are one batch in this order.
    let outcomes = join_all([
        store.commit(change(vec![absent("ours"), Guard::Before(past)], &[("ours", "too late")], &[])),
        store.commit(change(
            vec![absent("ours"), version("never", 3)],
            &[("ours", "no"), ("beside", "no")],
            &[],
        )),
        store.commit(change(vec![absent("never"), absent("beside")], &[], &[])),
        store.commit(change(vec![absent("ours")], &[("ours", "first")], &[])),
        store.commit(change(vec![absent("ours")], &[("ours", "second")], &[])),
        store.commit(change(Vec::new(), &[("ours", "third")], &[])),
        store.commit(change(Vec::new(), &[("beside", "yes")], &["ours"])),
        store.commit(change(vec![absent("ours"), absent("never")], &[("ours", "again")], &["never"])),
        store.commit(change(vec![absent("draft")], &[("draft", "as it is")], &[])),
    ])
    .await;
    let committed: Vec<bool> =
        outcomes.iter().map(|outcome| matches!(outcome, Ok(Outcome::Committed { .. }))).collect();
    assert_eq!(committed, [false, false, true, true, false, true, true, true, true]);
    let versions = |at: usize| match &outcomes[at] {
        Ok(Outcome::Committed { versions, .. }) => versions.clone(),
        other => panic!("{other:?}"),
    };
    let first = versions(3)[0];
    let Ok(Outcome::Conflict { current, .. }) = &outcomes[4] else { panic!("{:?}", outcomes[4]) };
    assert_eq!(current[..], [Some(Record { key: key("ours"), version: first, content: "first".into() })]);
    assert_eq!(versions(5), [first + 1]);
    assert_eq!(versions(7), [first + 2], "one that it did not have before it was deleted");

    let client = connect(&server).await;
    let rows = client.query("SELECT id, version, content FROM record ORDER BY id", &[]).await.unwrap();
    let found: Vec<(String, i64, Vec<u8>)> =
        rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let expected = [("beside", "yes", 6), ("draft", "as it is", 8), ("ours", "again", 7)];
    let expected = expected.map(|(id, content, at)| {
        (id.to_owned(), i64::try_from(versions(at)[0]).unwrap(), content.as_bytes().to_vec())
    });
    assert_eq!(found, expected);
}

/// A mark on a delivery, in a transaction that then waits for the counter of another mailbox.
fn mark_and_deliver() -> Change {
    let subject = Key::new(Kind::Exchange, "ours");
    let mut change = Change::new("acme".parse().unwrap());
    change.marks.push(Mark {
        mailbox: Mailbox::Shared,
        number: 1,
        subject: subject.clone(),
        reader: "ada".parse().unwrap(),
        kind: MarkKind::Acknowledged,
    });
    change.deliveries.push(delivery(Mailbox::SharedNews));
    change
}

fn delivery(mailbox: Mailbox) -> NewDelivery {
    NewDelivery {
        mailbox,
        msg_id: "m".parse().unwrap(),
        msg_type: MsgType::ApprovalRequest,
        subject: Key::new(Kind::Exchange, "ours"),
        payload: None,
        until: Timestamp::MAX,
    }
}

/// One node marks a delivery while another removes it: whoever comes second must see the first.
#[tokio::test]
async fn a_mark_beside_the_removal_of_its_delivery_leaves_no_orphan() {
    let subject = Key::new(Kind::Exchange, "ours");
    let removals = [
        Removal::ByNumber { mailbox: Mailbox::Shared, number: 1 },
        Removal::BySubject { subject: subject.clone(), msg_types: vec![MsgType::ApprovalRequest] },
        Removal::ByMessage { subject: subject.clone(), msg_id: "m".parse().unwrap() },
    ];
    for removal in removals {
        let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
        let open = async || Arc::new(PostgresStore::open(Options::new(server.url())).await.unwrap());
        let (one, other) = (open().await, open().await);
        let (holder, observer) = (connect(&server).await, connect(&server).await);
        let mut first = Change::new("acme".parse().unwrap());
        first.puts.push(Put { key: subject.clone(), content: "x".into() });
        first.deliveries = vec![delivery(Mailbox::Shared), delivery(Mailbox::SharedNews)];
        one.commit(first).await.unwrap();

        // The mark is inserted, and its transaction waits for the counter of `sn`.
        holder.batch_execute("BEGIN; SELECT FROM mailbox WHERE name = 'sn' FOR UPDATE").await.unwrap();
        let marking = tokio::spawn(async move { one.commit(mark_and_deliver()).await });
        wait_until_one_waits_for_a_lock(&observer).await;
        let mut change = Change::new("acme".parse().unwrap());
        change.removals.push(removal.clone());
        let removing = tokio::spawn(async move { other.commit(change).await });
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        while !removing.is_finished() && observer.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) < 2
        {
        }
        holder.batch_execute("ROLLBACK").await.unwrap();

        for commit in [marking, removing] {
            assert!(matches!(commit.await.unwrap(), Ok(Outcome::Committed { .. })), "{removal:?}");
        }
        let left = observer.query_one("SELECT count(*) FROM mark", &[]).await.unwrap().get::<_, i64>(0);
        assert_eq!(left, 0, "{removal:?}");
    }
}

static PAYLOADS: AtomicU64 = AtomicU64::new(1);

/// Changes a second of one tenant with 40 callers.
async fn rate(store: &Arc<PostgresStore>, round: &str) -> f64 {
    let running = Duration::from_secs(4);
    let end = Instant::now() + running;
    let mut callers = JoinSet::new();
    for caller in 0..40_u32 {
        let (store, round) = (Arc::clone(store), round.to_owned());
        callers.spawn(async move {
            let mut done = 0_u32;
            while Instant::now() < end {
                let id = format!("{round} {caller} {done}");
                let mut change = submit("quiet", &id, &id);
                let payload = PayloadId(PAYLOADS.fetch_add(1, Ordering::Relaxed).into());
                change.payloads.push((payload, vec![b'x'; 4096].into()));
                assert!(matches!(store.commit(change).await, Ok(Outcome::Committed { .. })));
                done += 1;
            }
            f64::from(done)
        });
    }
    callers.join_all().await.iter().sum::<f64>() / running.as_secs_f64()
}

/// Submits `per_second` exchanges of another tenant, each twice at once through two handles.
async fn conflict(stores: [Arc<PostgresStore>; 2], round: String, per_second: u32, stop: Arc<AtomicBool>) {
    let mut ticks = interval(Duration::from_secs(1) / per_second);
    let mut commits = JoinSet::new();
    for at in 0.. {
        ticks.tick().await;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        for (node, store) in stores.iter().enumerate() {
            let id = format!("{round} {at}");
            let (store, change) = (Arc::clone(store), submit("loud", &id, &format!("{id} {node}")));
            commits.spawn(async move { store.commit(change).await.unwrap() });
        }
    }
    commits.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn a_client_that_conflicts_costs_its_neighbours_no_more_than_its_own_work() {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let ours = Arc::new(PostgresStore::open(Options::new(server.url())).await.unwrap());
    let other = Arc::new(PostgresStore::open(Options::new(server.url())).await.unwrap());
    rate(&ours, "warm").await;
    for per_second in [40, 200] {
        for (nodes, second) in [("one node", &ours), ("two nodes", &other)] {
            let (mut alone, mut beside) = (0.0, 0.0);
            for round in 0..2 {
                let name = format!("{per_second} {nodes} {round}");
                alone += rate(&ours, &format!("{name} a")).await;
                let stop = Arc::new(AtomicBool::new(false));
                let stores = [Arc::clone(&ours), Arc::clone(second)];
                let attack = tokio::spawn(conflict(stores, name.clone(), per_second, Arc::clone(&stop)));
                beside += rate(&ours, &format!("{name} b")).await;
                stop.store(true, Ordering::Relaxed);
                attack.await.unwrap();
                sleep(Duration::from_millis(200)).await;
            }
            println!(
                "{per_second} pairs a second, {nodes}: alone {:.0}/s, beside {:.0}/s, ratio {:.2}",
                alone / 2.0,
                beside / 2.0,
                beside / alone
            );
        }
    }
}
