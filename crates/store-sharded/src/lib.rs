//! A store over several others: each tenant is on one of them, its shard, and can be moved to another.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | the shard of a tenant that was never moved | `buckets` |
//! | where tenants are, from what all shards know | `placement` |
//! | one shard: a database, whether it answers, and who is on it | `part`, `shard` |
//! | why shards are refused; what they are to each other | `error`, `membership` |
//! | the shards together, opened and followed | `sharded` |
//! | the port, [`Store`](countersign_core::store::Store) | `store` |
//! | how a tenant moves | `mover` |

mod buckets;
mod placement;

mod part;
mod shard;

mod error;
mod membership;

mod sharded;

mod store;

mod mover;

pub use error::{MoveError, OpenError};
pub use membership::check_members;
pub use mover::{Moved, Progress};
pub use part::{Opening, Part};
pub use sharded::{Options, ShardedStore};
