//! Values that can't be decoded, statements that the server refuses, and what they leave behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use countersign_core::store::{
    Change, Guard, Key, Kind, Mailbox, MailboxKey, NewDelivery, Outcome, PayloadId, Put, Store as _,
    StoreError,
};
use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::postgres::Postgres;
use countersign_wire::{id::TenantId, msg_type::MsgType};
use futures_util::future::join_all;
use tokio_postgres::{Client, NoTls};

/// A store with one writer, and a connection of somebody else.
async fn open() -> (Postgres, PostgresStore, Client) {
    let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let store = PostgresStore::open(Options { writers: 1, ..Options::new(server.url()) }).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    (server, store, client)
}

fn tenant() -> TenantId {
    "acme".parse().unwrap()
}

fn key(id: &str) -> Key {
    Key::new(Kind::Exchange, id)
}

fn put(id: &str) -> Change {
    let mut change = Change::new(tenant());
    change.puts.push(Put { key: key(id), content: "x".into() });
    change
}

fn guarded(id: &str, guard: Guard) -> Change {
    let mut change = put(id);
    change.guards.push(guard);
    change
}

async fn delivering(store: &PostgresStore, id: &str) -> Change {
    let mut change = put(id);
    change.deliveries.push(NewDelivery {
        mailbox: Mailbox::Shared,
        msg_id: "m".parse().unwrap(),
        msg_type: MsgType::ApprovalRequest,
        subject: key(id),
        payload: None,
        until: store.now().await.unwrap(),
    });
    change
}

fn is_corrupt<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Corrupt(_)))
}

fn is_committed(result: &Result<Outcome, StoreError>) -> bool {
    matches!(result, Ok(Outcome::Committed { .. }))
}

#[tokio::test]
async fn a_record_that_cannot_be_decoded_fails_the_changes_that_name_it_and_no_others() {
    let (_server, store, client) = open().await;
    client.batch_execute("INSERT INTO record VALUES ('acme', 1, 'damaged', -1, 'x')").await.unwrap();
    // Polled in order before the writer runs, so they are one batch.
    let outcomes = join_all([
        store.commit(guarded("a", Guard::Version(key("damaged"), 0))),
        store.commit(put("neighbour")),
        store.commit(guarded("b", Guard::Absent(key("damaged")))),
        store.commit(put("damaged")),
    ])
    .await;
    assert!([0, 2, 3].iter().all(|at| is_corrupt(&outcomes[*at])), "{outcomes:?}");
    assert!(is_committed(&outcomes[1]), "{outcomes:?}");
    // Locked without anything to insert.
    let mut confirm = Change::new(tenant());
    confirm.guards.push(Guard::Version(key("damaged"), 0));
    assert!(is_corrupt(&store.commit(confirm).await));
    let ids: Vec<String> = client
        .query("SELECT id FROM record ORDER BY id", &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(ids, ["damaged", "neighbour"]);
    assert!(is_corrupt(&store.load(&tenant(), &[key("damaged")]).await));
}

/// Every node claims for all tenants, and an older program may not know a kind of a newer one.
#[tokio::test]
async fn what_is_due_and_undecodable_does_not_keep_the_rest_from_being_claimed() {
    let (_server, store, client) = open().await;
    client
        .batch_execute(
            "INSERT INTO due VALUES ('acme', 99, 'unknown kind', 0), ('acme', 1, 'a', 1), ('', 1, 'b', 0)",
        )
        .await
        .unwrap();
    let (claimed, _) = store.claim_due(10).await.unwrap();
    assert_eq!(claimed.into_iter().map(|due| due.key).collect::<Vec<_>>(), [key("a")]);
    assert_eq!(store.claim_due(10).await.unwrap().0, []);
}

#[tokio::test]
async fn a_damaged_counter_fails_the_change_that_delivers_there_and_no_others() {
    let (_server, store, client) = open().await;
    client.batch_execute("INSERT INTO mailbox VALUES ('acme', 's', -7)").await.unwrap();
    let delivering = delivering(&store, "a").await;
    let outcomes = join_all([store.commit(delivering), store.commit(put("neighbour"))]).await;
    assert!(is_corrupt(&outcomes[0]), "{outcomes:?}");
    assert!(is_committed(&outcomes[1]), "{outcomes:?}");
    assert_eq!(store.load(&tenant(), &[key("a")]).await.unwrap().records, [None], "all or nothing");
    let mailbox = MailboxKey { tenant: tenant(), mailbox: Mailbox::Shared };
    assert!(is_corrupt(&store.heads(&[mailbox]).await));
}

#[tokio::test]
async fn a_warning_during_a_refused_change_does_not_put_the_next_one_in_doubt() {
    let (_server, store, client) = open().await;
    client
        .batch_execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 RAISE WARNING 'as if the standby were gone'; RAISE EXCEPTION 'no'; END $$; \
             CREATE TRIGGER refuse BEFORE INSERT ON record FOR EACH ROW WHEN (NEW.id = 'bad') \
                 EXECUTE FUNCTION refuse()",
        )
        .await
        .unwrap();
    assert!(matches!(store.commit(put("bad")).await, Err(StoreError::Unavailable(_))));
    let next = store.commit(put("good")).await;
    assert!(is_committed(&next), "{next:?}");
}

#[tokio::test]
async fn large_payloads_of_a_change_that_fails_halfway_are_discarded() {
    let (_server, store, client) = open().await;
    client
        .batch_execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 RAISE EXCEPTION 'no'; END $$; \
             CREATE TRIGGER refuse BEFORE INSERT ON payload FOR EACH ROW \
                 WHEN (NEW.id = decode(lpad('3', 32, '0'), 'hex')) EXECUTE FUNCTION refuse()",
        )
        .await
        .unwrap();
    let mut change = put("a");
    change.payloads.extend((1..=3).map(|id| (PayloadId(id), vec![b'x'; 100_000].into())));
    assert!(matches!(store.commit(change).await, Err(StoreError::Unavailable(_))));
    for table in ["payload", "payload_pending", "record"] {
        let rows = client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap();
        assert_eq!(rows.get::<_, i64>(0), 0, "{table}");
    }
}
