//! Why shards are refused, and why a tenant is not moved.

use std::time::Duration;

use countersign_core::store::StoreError;

/// Why the shards can't be used together.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("no shard is given, and the first must answer")]
    NoFirst,
    #[error("shard {name}: the database can't be used")]
    Store { name: String, source: StoreError },
    #[error(
        "shard {name}: the database is shard {found} of these; list all shards in the order in which they were first listed, \
         under the names that they had"
    )]
    OtherShard { name: String, found: String },
    #[error(
        "shard {name}: the database is a shard of another store; give it the database that it had, or a new one"
    )]
    OtherStore { name: String },
    #[error(
        "shard {name}: the database was used already, and only that of the first shard may be when shards are set up; give it a \
         new database"
    )]
    NotNew { name: String },
    #[error(
        "shard {name}: the database is new, and another one was this shard before; check its url, and if that database is lost, \
         restore it from a backup"
    )]
    Replaced { name: String },
    #[error(
        "shard {name}: the database is new, and that of {other} is a shard already; check the url of {name}, and if its database \
         is lost, restore it from a backup"
    )]
    FirstIsNew { name: String, other: String },
    #[error(
        "shard {name}: the database does not answer, and all must when shards are set up; try again when it does"
    )]
    SetUpWithout { name: String },
    #[error("shard {missing} is missing, and tenants are on it; list all shards")]
    Missing { missing: u16 },
    #[error("shard {name}: what the database says of its buckets is damaged")]
    Buckets { name: String },
}

/// Why a tenant was not moved. Unless it says otherwise, the tenant is where it was, or on its way: asking for the same move
/// again goes on with it.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error("there is no such shard")]
    NoSuchShard,
    #[error("shard {name} does not answer; the tenant can be moved when it does")]
    Away { name: String },
    #[error("what nodes share is no tenant, and is on the shard that its name says")]
    OfNodes,
    #[error(
        "the tenant is on its way from {from} to {to}; go on with that, or take it back by moving it to {from}"
    )]
    OnItsWay { from: String, to: String },
    #[error(
        "the tenant has left {from} for {to}, and {to} does not have it, as after a restore from a backup of before the move; \
         restore {to} from a newer one"
    )]
    Forgotten { from: String, to: String },
    #[error(
        "what an earlier move or a restored backup may have left of it on {} was not deleted, because that \
         does not answer; ask again when it does",
        names.join(", ")
    )]
    NotTidied { names: Vec<String> },
    #[error("somebody else is moving the tenant; see where it is, and ask again")]
    Contended,
    #[error(
        "the clock of shard {to} is {} s behind that of {from}, and time must not go back for the tenant; correct it and ask \
         again",
        behind.as_secs()
    )]
    Clock { from: String, to: String, behind: Duration },
    #[error("shard {name} failed")]
    Store { name: String, source: StoreError },
}

impl MoveError {
    /// Whether nothing but a shard that failed is in the way, so that the same move goes on where it has stopped.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Away { .. } | Self::Store { .. })
    }
}
