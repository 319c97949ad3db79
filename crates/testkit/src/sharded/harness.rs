//! The harness of a sharded store: two harnesses of another store behind one.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::store::{Relocation, Shard, Store};
use countersign_store_sharded::Options;
use countersign_wire::timestamp::Timestamp;
use tokio::time::Instant;

use super::store::FaultyShards;
use crate::store_suite::StoreHarness;

/// How long a store is waited for that was let go.
const MOST_WAITING: Duration = Duration::from_secs(1);

/// Two empty databases behind one store.
pub struct ShardedHarness {
    shards: [Box<dyn StoreHarness>; 2],
    options: Options,
    /// `None` only while it is reopened.
    store: Option<FaultyShards>,
}

impl ShardedHarness {
    pub async fn new(shards: [Box<dyn StoreHarness>; 2], options: Options) -> Self {
        let store = over(&shards, options).await;
        Self { shards, options, store: Some(store) }
    }

    /// The store, whose shards can be made to fail.
    pub fn sharded(&self) -> &FaultyShards {
        self.store.as_ref().expect("the store is open")
    }

    /// The store of one shard alone.
    pub fn shard(&self, shard: Shard) -> Arc<dyn Store> {
        self.shards[usize::from(shard.0)].store()
    }

    /// As [`ShardedHarness::shard`], of a store whose tenants can be moved.
    pub fn relocation(&self, shard: Shard) -> Arc<dyn Relocation> {
        self.shards[usize::from(shard.0)].relocation().expect("tenants can be moved")
    }

    /// Sets the clock of one shard alone.
    pub async fn set_now_of(&self, shard: Shard, now: Timestamp) {
        self.shards[usize::from(shard.0)].set_now(now).await;
    }

    /// As [`StoreHarness::second_handle`], with shards that can be made to fail.
    pub async fn second(&self) -> FaultyShards {
        let [one, other] = &self.shards;
        match (one.second_relocation().await, other.second_relocation().await) {
            (Some(one), Some(other)) => FaultyShards::relocatable(vec![one, other], self.options).await,
            _ => FaultyShards::over(vec![one.second_handle().await, other.second_handle().await]).await,
        }
    }
}

async fn over(shards: &[Box<dyn StoreHarness>], options: Options) -> FaultyShards {
    let relocations: Option<Vec<_>> = shards.iter().map(|shard| shard.relocation()).collect();
    match relocations {
        Some(relocations) => FaultyShards::relocatable(relocations, options).await,
        None => FaultyShards::over(shards.iter().map(|shard| shard.store()).collect()).await,
    }
}

#[async_trait]
impl StoreHarness for ShardedHarness {
    fn store(&self) -> Arc<dyn Store> {
        self.sharded().store()
    }

    async fn second_handle(&self) -> Arc<dyn Store> {
        self.second().await.store()
    }

    async fn reopen(&mut self) {
        // The shards close what nobody else uses.
        let sharded = self.store.take().map(|store| Arc::downgrade(&store.store()));
        // It may just be asking its shards who is on them. A case may also keep it, and does not use it again.
        let until = Instant::now() + MOST_WAITING;
        while sharded.as_ref().is_some_and(|store| store.strong_count() > 0) && Instant::now() < until {
            tokio::task::yield_now().await;
        }
        for shard in &mut self.shards {
            shard.reopen().await;
        }
        self.store = Some(over(&self.shards, self.options).await);
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
