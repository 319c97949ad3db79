//! The suite of all stores, on a private PostgreSQL server with a clock that the suite sets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{process::ExitCode, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::store::Store;
use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::{
    postgres::Postgres,
    store_suite::{self, StoreHarness},
};
use countersign_wire::timestamp::Timestamp;
use tokio_postgres::{Client, NoTls};

struct PostgresHarness {
    server: Arc<Postgres>,
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
        let server = Arc::new(tokio::task::spawn_blocking(Postgres::start).await.unwrap());
        let url = server.url();
        Self::on(server, url).await
    }

    /// Two databases of one server.
    async fn two() -> [Self; 2] {
        let first = Self::new().await;
        first.clock.batch_execute("CREATE DATABASE other").await.unwrap();
        // The last of two settings counts.
        let url = format!("{} dbname=other", first.url);
        let other = Self::on(Arc::clone(&first.server), url).await;
        [first, other]
    }

    async fn on(server: Arc<Postgres>, url: String) -> Self {
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
        let harness = Self { server, url, store, clock };
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

fn main() -> ExitCode {
    store_suite::run_also_sharded(
        || Box::pin(async { Box::new(PostgresHarness::new().await) as Box<dyn StoreHarness> }),
        || Box::pin(async { PostgresHarness::two().await.map(|one| Box::new(one) as Box<dyn StoreHarness>) }),
    )
}
