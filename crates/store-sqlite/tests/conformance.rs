//! The suite of all stores, on a file with a clock that the suite sets.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use async_trait::async_trait;
use countersign_core::store::Store;
use countersign_store_sqlite::{Clock, ManualClock, Options, SqliteStore};
use countersign_testkit::store_suite::{self, StoreHarness};
use countersign_wire::timestamp::Timestamp;
use tempfile::TempDir;

struct SqliteHarness {
    folder: TempDir,
    clock: ManualClock,
    /// `None` only while it is reopened.
    store: Option<Arc<SqliteStore>>,
}

impl SqliteHarness {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder for the database");
        let mut harness = Self { folder, clock: ManualClock::new(store_suite::start()), store: None };
        harness.store = Some(harness.open());
        harness
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("countersign.db")
    }

    fn open(&self) -> Arc<SqliteStore> {
        let options = Options { clock: Clock::Manual(self.clock.clone()), ..Options::default() };
        Arc::new(SqliteStore::open(self.path(), options).expect("the database opens"))
    }
}

#[async_trait]
impl StoreHarness for SqliteHarness {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone().expect("the store is open")
    }

    async fn second_handle(&self) -> Arc<dyn Store> {
        self.open()
    }

    async fn reopen(&mut self) {
        if let Some(store) = self.store.take().and_then(Arc::into_inner) {
            store.close().await;
        }
        self.store = Some(self.open());
    }

    async fn set_now(&self, now: Timestamp) {
        self.clock.set(now);
    }
}

fn new() -> Box<dyn StoreHarness> {
    Box::new(SqliteHarness::new())
}

fn main() -> ExitCode {
    store_suite::run_also_sharded(|| Box::pin(async { new() }), || Box::pin(async { [new(), new()] }))
}
