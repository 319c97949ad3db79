//! A store over two others, as one that is spread over several databases has to work: it passes the suite of all stores,
//! a shard that fails is noticed by its own tenants only, and tenants are moved between them.

mod cases;
mod harness;
mod load;
mod moves;
mod store;

pub use cases::{CASES, ShardedCase};
pub use harness::ShardedHarness;
pub use moves::{MOVES, OPTIONS};
pub use store::{Fault, FaultyShards};
