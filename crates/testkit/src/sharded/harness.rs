//! The harness of a sharded store: two harnesses of another store behind one.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::store::{Shard, Store};
use countersign_wire::timestamp::Timestamp;

use super::store::ShardedStore;
use crate::store_suite::StoreHarness;

/// Two empty databases behind one store.
pub struct ShardedHarness {
    shards: [Box<dyn StoreHarness>; 2],
    /// `None` only while it is reopened.
    store: Option<Arc<ShardedStore>>,
}

impl ShardedHarness {
    pub fn new(shards: [Box<dyn StoreHarness>; 2]) -> Self {
        let store = over(&shards);
        Self { shards, store: Some(store) }
    }

    /// The store, whose shards can be made to fail.
    pub fn sharded(&self) -> &Arc<ShardedStore> {
        self.store.as_ref().expect("the store is open")
    }

    /// The store of one shard alone.
    pub fn shard(&self, shard: Shard) -> Arc<dyn Store> {
        self.shards[usize::from(shard.0)].store()
    }
}

fn over(shards: &[Box<dyn StoreHarness>]) -> Arc<ShardedStore> {
    ShardedStore::new(shards.iter().map(|shard| shard.store()).collect())
}

#[async_trait]
impl StoreHarness for ShardedHarness {
    fn store(&self) -> Arc<dyn Store> {
        Arc::<ShardedStore>::clone(self.sharded())
    }

    async fn second_handle(&self) -> Arc<dyn Store> {
        let [one, other] = &self.shards;
        ShardedStore::new(vec![one.second_handle().await, other.second_handle().await])
    }

    async fn reopen(&mut self) {
        // The shards close what nobody else uses.
        self.store = None;
        for shard in &mut self.shards {
            shard.reopen().await;
        }
        self.store = Some(over(&self.shards));
    }

    async fn set_now(&self, now: Timestamp) {
        for shard in &self.shards {
            shard.set_now(now).await;
        }
    }

    fn model_steps(&self) -> usize {
        self.shards[0].model_steps()
    }
}
