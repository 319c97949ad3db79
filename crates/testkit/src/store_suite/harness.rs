//! What a store's test provides: a database of its own for every case, with a clock that is set.

use std::{future::Future, pin::Pin, sync::Arc};

use async_trait::async_trait;
use countersign_core::store::{Relocation, Store};
use countersign_wire::timestamp::Timestamp;

/// The time of a new [`StoreHarness`]'s clock.
pub const START: &str = "2026-11-15T12:00:00Z";

/// [`START`] as a [`Timestamp`].
pub fn start() -> Timestamp {
    START.parse().expect("START is a point in time")
}

// CONTRIBUTING: add a store, step 3
/// A store under test: one empty database, its handles and its clock.
#[async_trait]
pub trait StoreHarness: Send + Sync + 'static {
    /// The handle that most cases use; stays the same until [`StoreHarness::reopen`].
    fn store(&self) -> Arc<dyn Store>;

    /// Another handle on the same data with its own connections and writers, as on another node of a cluster.
    async fn second_handle(&self) -> Arc<dyn Store>;

    /// [`StoreHarness::store`], if its tenants can be moved to other stores of its kind.
    fn relocation(&self) -> Option<Arc<dyn Relocation>> {
        None
    }

    /// As [`StoreHarness::second_handle`], if tenants can be moved.
    async fn second_relocation(&self) -> Option<Arc<dyn Relocation>> {
        None
    }

    /// Closes every handle and reopens the data, as a restart does. Handles from before must not be used
    /// afterwards; the clock keeps its time.
    async fn reopen(&mut self);

    /// Sets the store's clock, which does not advance by itself.
    async fn set_now(&self, now: Timestamp);

    /// How many random commands `gateway_suite::model` runs on this store; fewer for a slow one.
    fn model_steps(&self) -> usize {
        20_000
    }
}

/// Makes an empty database whose clock is at [`START`].
pub type MakeHarness = fn() -> Pin<Box<dyn Future<Output = Box<dyn StoreHarness>> + Send>>;

/// Makes two empty databases whose clocks are at [`START`]. They may be of one server.
pub type MakeHarnesses = fn() -> Pin<Box<dyn Future<Output = [Box<dyn StoreHarness>; 2]> + Send>>;
