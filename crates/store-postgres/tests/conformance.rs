//! The suite of all stores, on private PostgreSQL servers with a clock that the suite sets.
//!
//! Each case has its own database. The cases of one process share a server, because starting one takes longer than most cases:
//! `cargo test` runs all of them in one process, `cargo nextest` each in a process of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{process::ExitCode, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::store::{Relocation, Store};
use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::{
    postgres::Postgres,
    store_suite::{self, StoreHarness},
};
use countersign_wire::timestamp::Timestamp;
use parking_lot::Mutex;
use tokio_postgres::{Client, NoTls};

/// A server has no more databases than this, which are removed with it: to drop one alone costs a checkpoint.
const DATABASES_PER_SERVER: usize = 40;

/// The server that new databases are made on, and how many it has.
static SERVER: Mutex<Option<(Arc<Postgres>, usize)>> = Mutex::new(None);

/// A server, and the name of a database that it does not have yet.
fn next_database() -> (Arc<Postgres>, String) {
    let mut current = SERVER.lock();
    current.take_if(|(_, databases)| *databases == DATABASES_PER_SERVER);
    // Cases of other threads are connected to it too.
    let (server, databases) =
        current.get_or_insert_with(|| (Arc::new(Postgres::start_with(&["max_connections=400"])), 0));
    *databases += 1;
    (Arc::clone(server), format!("database_{databases}"))
}

struct PostgresHarness {
    /// Runs for as long as this does.
    _server: Arc<Postgres>,
    /// The connection string of its own database.
    url: String,
    store: Arc<PostgresStore>,
    clock: Client,
}

async fn open(url: &str) -> Arc<PostgresStore> {
    // The suite sets the time, so none is estimated.
    let options = Options { max_clock_age: Duration::ZERO, ..Options::new(url) };
    Arc::new(PostgresStore::open(options).await.unwrap())
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl PostgresHarness {
    async fn new() -> Self {
        let (server, database) = tokio::task::spawn_blocking(next_database).await.unwrap();
        connect(&server.url()).await.batch_execute(&format!("CREATE DATABASE {database}")).await.unwrap();
        // The last of two settings counts.
        let url = format!("{} dbname={database}", server.url());
        let store = open(&url).await;
        let clock = connect(&url).await;
        clock
            .batch_execute(
                "CREATE TABLE test_clock (now bigint NOT NULL); INSERT INTO test_clock VALUES (0); \
                 CREATE OR REPLACE FUNCTION gateway_now() RETURNS bigint LANGUAGE sql VOLATILE \
                 AS $$ SELECT now FROM test_clock $$",
            )
            .await
            .unwrap();
        let harness = Self { _server: server, url, store, clock };
        harness.set_now(store_suite::start()).await;
        harness
    }
}

#[async_trait]
impl StoreHarness for PostgresHarness {
    fn store(&self) -> Arc<dyn Store> {
        Arc::<PostgresStore>::clone(&self.store)
    }

    async fn second_handle(&self) -> Arc<dyn Store> {
        open(&self.url).await
    }

    fn relocation(&self) -> Option<Arc<dyn Relocation>> {
        Some(Arc::<PostgresStore>::clone(&self.store))
    }

    async fn second_relocation(&self) -> Option<Arc<dyn Relocation>> {
        Some(open(&self.url).await)
    }

    async fn reopen(&mut self) {
        self.store = open(&self.url).await;
    }

    async fn set_now(&self, now: Timestamp) {
        self.clock.execute("UPDATE test_clock SET now = $1", &[&now.unix_micros()]).await.unwrap();
    }

    fn model_steps(&self) -> usize {
        5_000
    }
}

fn boxed(harness: PostgresHarness) -> Box<dyn StoreHarness> {
    Box::new(harness)
}

fn main() -> ExitCode {
    let exit_code = store_suite::run_also_relocating(
        || Box::pin(async { boxed(PostgresHarness::new().await) }),
        || Box::pin(async { [PostgresHarness::new().await, PostgresHarness::new().await].map(boxed) }),
    );
    // Nothing static is dropped by itself, and the server stops when it is.
    drop(SERVER.lock().take());
    exit_code
}
