//! A store over two others, as one that is spread over several databases has to work: it passes the suite of all stores,
//! and a shard that fails is noticed by its own tenants only.

mod cases;
mod harness;
mod store;

pub use cases::{CASES, ShardedCase};
pub use harness::ShardedHarness;
pub use store::{Fault, ShardedStore};
