//! One database of the store, before it is a shard.

use std::{pin::Pin, sync::Arc};

use countersign_core::store::{Relocation, StoreError};

/// Opens the database of a shard. Called until it succeeds.
pub type Opening = Box<dyn Fn() -> Opened + Send + Sync>;
type Opened = Pin<Box<dyn Future<Output = Result<Arc<dyn Relocation>, StoreError>> + Send>>;

/// One database of the store.
pub enum Part {
    Open(Arc<dyn Relocation>),
    /// It does not answer now, and its tenants have to wait until it does.
    Away(Opening),
}
