//! Runs the conformance suite of stores on the store in memory.

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use async_trait::async_trait;
use countersign_core::store::Store;
use countersign_testkit::store_suite::{self, StoreHarness};
use countersign_wire::timestamp::Timestamp;
use parking_lot::Mutex;

#[path = "../src/memory_mailboxes.rs"]
mod memory_mailboxes;
#[path = "../src/memory_store.rs"]
mod memory_store;

use memory_store::{Data, MemoryStore};

struct MemoryHarness {
    now: Arc<AtomicI64>,
    data: Arc<Mutex<Data>>,
    store: Arc<dyn Store>,
}

fn open(data: &Arc<Mutex<Data>>, now: &Arc<AtomicI64>) -> Arc<dyn Store> {
    let now = Arc::clone(now);
    let clock = move || Timestamp::from_unix_micros(now.load(Ordering::SeqCst));
    Arc::new(MemoryStore::new(Arc::clone(data), clock))
}

#[async_trait]
impl StoreHarness for MemoryHarness {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    async fn second_handle(&self) -> Arc<dyn Store> {
        open(&self.data, &self.now)
    }

    async fn reopen(&mut self) {
        self.store = open(&self.data, &self.now);
    }

    async fn set_now(&self, now: Timestamp) {
        self.now.store(now.unix_micros(), Ordering::SeqCst);
    }
}

fn main() -> ExitCode {
    store_suite::run(|| {
        Box::pin(async {
            let now = Arc::new(AtomicI64::new(store_suite::start().unix_micros()));
            let data = Arc::default();
            let store = open(&data, &now);
            Box::new(MemoryHarness { now, data, store }) as Box<dyn StoreHarness>
        })
    })
}
