//! The audit log: months are partitions, made ahead and dropped when they are over, and no commit depends on it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use countersign_core::store::{AuditRow, Change, Key, Kind, Outcome, Put, Store as _};
use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::postgres::Postgres;
use countersign_wire::timestamp::Timestamp;
use tokio::{task::JoinSet, time::timeout};
use tokio_postgres::{Client, NoTls};

const DAY: Duration = Duration::from_hours(24);

/// A tenant's log in order, as the operator's guide has it.
const LOG: &str = "SELECT subject_id FROM audit WHERE tenant = $1 AND at >= $2 AND at < $3 ORDER BY at, seq";

struct Log {
    server: Postgres,
    store: Arc<PostgresStore>,
    client: Client,
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

async fn connect(server: &Postgres) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Log {
    /// A store whose clock is at this time from the start.
    async fn new(now: &str) -> Self {
        let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
        let client = connect(&server).await;
        drop(PostgresStore::open(Options::new(server.url())).await.unwrap());
        // As a gateway that was installed at that time.
        client
            .batch_execute(
                "DO $$ DECLARE name text; BEGIN FOR name IN SELECT relname FROM pg_class \
                 WHERE relname ~ '^audit_[0-9]{6}$' LOOP EXECUTE 'DROP TABLE ' || name; END LOOP; END $$; \
                 CREATE TABLE test_clock (now bigint NOT NULL); INSERT INTO test_clock VALUES (0); \
                 CREATE OR REPLACE FUNCTION gateway_now() RETURNS bigint LANGUAGE sql VOLATILE \
                 AS $$ SELECT now FROM test_clock $$",
            )
            .await
            .unwrap();
        client.execute("UPDATE test_clock SET now = $1", &[&at(now).unix_micros()]).await.unwrap();
        Self { store: Arc::new(Self::open(&server).await), server, client }
    }

    async fn open(server: &Postgres) -> PostgresStore {
        PostgresStore::open(Options::new(server.url())).await.unwrap()
    }

    async fn set_now(&self, now: Timestamp) {
        self.client.execute("UPDATE test_clock SET now = $1", &[&now.unix_micros()]).await.unwrap();
    }

    /// Commits a record with its row of the log.
    async fn write(&self, id: &str) {
        write(&self.store, id).await;
    }

    /// The partition of each row, in the order of the log.
    async fn partitions(&self) -> Vec<String> {
        let sql = "SELECT tableoid::regclass::text FROM audit WHERE tenant = 'acme' ORDER BY at, seq";
        self.client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    /// The months that there are.
    async fn months(&self) -> Vec<String> {
        let sql = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'audit'::regclass \
                   AND inhrelid <> 'audit_default'::regclass ORDER BY 1";
        self.client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    async fn ids(&self) -> Vec<String> {
        let rows = self.client.query(LOG, &[&"acme", &i64::MIN, &i64::MAX]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

async fn write(store: &PostgresStore, id: &str) {
    let key = Key::new(Kind::Exchange, id);
    let mut change = Change::new("acme".parse().unwrap());
    change.puts.push(Put { key: key.clone(), content: "x".into() });
    change.audit.push(AuditRow { subject: key, event: "{}".into() });
    assert!(matches!(store.commit(change).await.unwrap(), Outcome::Committed { .. }));
}

#[tokio::test]
async fn a_month_is_made_ahead_and_dropped_when_it_is_over() {
    let log = Log::new("2031-12-20T00:00:00Z").await;
    assert_eq!(log.months().await, ["audit_203112", "audit_203201"], "made when the store is opened");
    log.write("december").await;
    log.set_now(at("2032-01-31T23:59:59.999999Z")).await;
    log.write("january").await;
    log.store.sweep_audit(at("2031-12-01T00:00:00Z"), 10).await.unwrap();
    log.set_now(at("2032-02-01T00:00:00Z")).await;
    log.write("february").await;
    assert_eq!(log.partitions().await, ["audit_203112", "audit_203201", "audit_203202"]);
    // A month is dropped when all of it is old, and not before.
    log.store.sweep_audit(at("2031-12-31T23:59:59Z"), 10).await.unwrap();
    assert_eq!(log.ids().await, ["december", "january", "february"]);
    log.store.sweep_audit(at("2032-01-01T00:00:00Z"), 10).await.unwrap();
    assert_eq!(log.ids().await, ["january", "february"]);
    assert_eq!(log.months().await, ["audit_203201", "audit_203202", "audit_203203"]);
}

#[tokio::test]
async fn a_row_without_a_month_is_kept_read_in_order_and_deleted_when_it_is_old() {
    let log = Log::new("2031-03-10T00:00:00Z").await;
    log.write("here").await;
    // Years ahead of everything that was made.
    let there = at("2040-06-15T00:00:00Z");
    log.set_now(there).await;
    for id in ["there 1", "there 2", "there 3"] {
        log.write(id).await;
    }
    let past = Timestamp::MIN;
    assert_eq!(log.store.sweep_audit(past, 10).await, Ok(0));
    log.write("there 4").await;
    log.set_now(at("2040-07-01T00:00:00Z")).await;
    log.write("next").await;
    // The month that has rows in the default partition stays there; the next one is a partition again.
    let default = "audit_default";
    assert_eq!(log.partitions().await, ["audit_203103", default, default, default, default, "audit_204007"]);
    assert_eq!(log.ids().await, ["here", "there 1", "there 2", "there 3", "there 4", "next"]);
    let old = there.plus(DAY);
    assert_eq!(log.store.sweep_audit(there, 3).await, Ok(0), "none is older");
    assert_eq!(log.store.sweep_audit(old, 3).await, Ok(3), "a bounded number at a time");
    assert_eq!(log.store.sweep_audit(old, 3).await, Ok(1));
    assert_eq!(log.ids().await, ["next"]);
    // With no row of it left, the month could be made: a clock that goes back finds it.
    log.set_now(there).await;
    log.store.sweep_audit(past, 10).await.unwrap();
    log.write("again").await;
    assert_eq!(log.partitions().await, ["audit_204006", "audit_204007"]);
}

#[tokio::test]
async fn nodes_that_change_partitions_at_once_beside_commits_disturb_nobody() {
    let log = Log::new("2031-01-15T00:00:00Z").await;
    let mut stores = vec![Arc::clone(&log.store)];
    for _ in 0..3 {
        stores.push(Arc::new(Log::open(&log.server).await));
    }
    for month in 1..=12_u64 {
        let now = at("2031-01-15T00:00:00Z").plus(DAY * 30 * u32::try_from(month).unwrap());
        log.set_now(now).await;
        let before = now.minus(DAY * 90);
        let mut running = JoinSet::new();
        for (node, store) in stores.iter().enumerate() {
            let (sweeping, writing) = (Arc::clone(store), Arc::clone(store));
            running.spawn(async move { sweeping.sweep_audit(before, 100).await.map(drop).unwrap() });
            running.spawn(async move {
                for number in 0..10 {
                    write(&writing, &format!("{month} {node} {number}")).await;
                }
            });
        }
        running.join_all().await;
    }
    // What one node could not do because another was just at it is done by the next sweep.
    log.store.sweep_audit(Timestamp::MIN, 1).await.unwrap();
    let months = log.months().await;
    assert!(months.len() <= 6, "{months:?}");
    let last = log.ids().await.iter().filter(|id| id.starts_with("12 ")).count();
    assert_eq!(last, 40, "nothing is lost");
}

#[tokio::test]
async fn a_dump_that_runs_delays_commits_for_a_moment_and_keeps_the_month() {
    let log = Log::new("2031-01-15T00:00:00Z").await;
    log.write("january").await;
    log.set_now(at("2031-06-15T00:00:00Z")).await;
    let dump = connect(&log.server).await;
    dump.batch_execute("BEGIN; LOCK TABLE audit IN ACCESS SHARE MODE").await.unwrap();
    let writing = async {
        for number in 0..20 {
            log.write(&format!("june {number}")).await;
        }
    };
    let (swept, written) = tokio::join!(
        log.store.sweep_audit(at("2031-03-01T00:00:00Z"), 10),
        timeout(Duration::from_secs(30), writing)
    );
    swept.unwrap();
    written.unwrap();
    assert!(log.months().await.contains(&"audit_203101".to_owned()), "it is still read");
    dump.batch_execute("COMMIT").await.unwrap();
    // The next attempt is half an hour later, so that commits are not delayed again and again.
    log.store.sweep_audit(at("2031-03-01T00:00:00Z"), 10).await.unwrap();
    assert!(log.months().await.contains(&"audit_203101".to_owned()), "it is too early for another attempt");
    // Another node has not failed yet.
    let other = Log::open(&log.server).await;
    other.sweep_audit(at("2031-03-01T00:00:00Z"), 10).await.unwrap();
    assert!(!log.months().await.contains(&"audit_203101".to_owned()));
}
