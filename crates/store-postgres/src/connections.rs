//! The connections beside those of the writers: for reads, large payloads and the sweeper. One is kept for finding out who
//! a client is.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use countersign_core::store::StoreError;
use deadpool_postgres::{Object, Pool, PoolError, Runtime, TimeoutType};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use crate::{connect::Connector, error::OpenError};

/// A caller that waits longer for a connection is rejected as overload.
const MAX_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Connections {
    pool: Pool,
    /// One fewer than there are connections.
    shared: Semaphore,
}

/// A connection until it is dropped.
pub(crate) struct Connection<'a> {
    client: Object,
    _permit: Option<SemaphorePermit<'a>>,
}

impl Connections {
    /// Up to `count` connections, at least two, each opened when it is first needed.
    pub(crate) fn new(connector: &Connector, count: usize) -> Result<Self, OpenError> {
        let count = count.max(2);
        let pool = Pool::builder(connector.manager())
            .max_size(count)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(MAX_WAIT))
            .create_timeout(Some(connector.max_wait() + Duration::from_secs(1)))
            .build()?;
        Ok(Self { pool, shared: Semaphore::new(count - 1) })
    }

    /// A connection for anything but authentication.
    pub(crate) async fn get(&self) -> Result<Connection<'_>, StoreError> {
        let permit = timeout(MAX_WAIT, self.shared.acquire()).await.map_err(|_| StoreError::Overloaded)?;
        let permit = permit.map_err(StoreError::unavailable)?;
        Ok(Connection { client: self.pool.get().await.map_err(not_connected)?, _permit: Some(permit) })
    }

    /// A connection for authentication, which waits behind nothing else.
    pub(crate) async fn get_reserved(&self) -> Result<Connection<'_>, StoreError> {
        Ok(Connection { client: self.pool.get().await.map_err(not_connected)?, _permit: None })
    }
}

fn not_connected(error: PoolError) -> StoreError {
    match error {
        PoolError::Timeout(TimeoutType::Wait) => StoreError::Overloaded,
        PoolError::Backend(error) => StoreError::unavailable(OpenError::from(error)),
        error => StoreError::unavailable(error),
    }
}

impl Deref for Connection<'_> {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.client
    }
}

impl DerefMut for Connection<'_> {
    fn deref_mut(&mut self) -> &mut Object {
        &mut self.client
    }
}
