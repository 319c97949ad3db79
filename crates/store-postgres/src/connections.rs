//! The connections beside those of the writers: for reads, large payloads and the sweeper. One is kept for finding out who
//! a client is.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use countersign_core::{
    fair::{FairPermit, FairSemaphore},
    store::StoreError,
};
use countersign_wire::id::TenantId;
use deadpool::{
    Runtime,
    managed::{self, Metrics, PoolError, QueueMode, RecycleError, RecycleResult, TimeoutType},
};
use deadpool_postgres::ClientWrapper;
use tokio::time::timeout;

use crate::{
    connect::{Connector, InDoubt},
    error::OpenError,
};

/// A caller that waits longer for a connection is rejected as overload.
const MAX_WAIT: Duration = Duration::from_secs(10);

type Object = managed::Object<Connector>;

#[derive(Debug)]
pub(crate) struct Connections {
    pool: managed::Pool<Connector>,
    /// One fewer than there are connections, given to tenants in turn.
    shared: FairSemaphore,
}

/// A connection until it is dropped.
pub(crate) struct Connection {
    client: Object,
    _permit: Option<FairPermit>,
}

impl Connections {
    /// Up to `count` connections, at least two, each opened when it is first needed.
    pub(crate) fn new(connector: &Connector, count: usize) -> Result<Self, OpenError> {
        let count = count.max(2);
        let pool = managed::Pool::builder(connector.clone())
            .max_size(count)
            // The last used first: a connection keeps memory for the largest payload that it has sent.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(MAX_WAIT))
            .create_timeout(Some(connector.max_wait() + Duration::from_secs(1)))
            .build()?;
        Ok(Self { pool, shared: FairSemaphore::new(count - 1) })
    }

    /// A connection for anything but authentication. However many a tenant waits for, others wait for one of its turns.
    pub(crate) async fn get(&self, of: &TenantId) -> Result<Connection, StoreError> {
        self.get_with(self.shared.acquire(of)).await
    }

    /// A connection for what is not about one tenant: the gateway takes its turn as one of them.
    pub(crate) async fn get_for_all(&self) -> Result<Connection, StoreError> {
        self.get_with(self.shared.acquire_for_all()).await
    }

    async fn get_with(&self, permit: impl Future<Output = FairPermit>) -> Result<Connection, StoreError> {
        let permit = timeout(MAX_WAIT, permit).await.map_err(|_| StoreError::Overloaded)?;
        Ok(Connection { client: self.pool.get().await.map_err(not_connected)?, _permit: Some(permit) })
    }

    /// A connection for authentication, which waits behind nothing else.
    pub(crate) async fn get_reserved(&self) -> Result<Connection, StoreError> {
        Ok(Connection { client: self.pool.get().await.map_err(not_connected)?, _permit: None })
    }
}

impl managed::Manager for Connector {
    type Type = ClientWrapper;
    type Error = OpenError;

    async fn create(&self) -> Result<ClientWrapper, OpenError> {
        // A reader of the pool commits nothing that could be in doubt.
        let (client, driver) = self.start(InDoubt::default()).await?;
        Ok(ClientWrapper::new(client, driver))
    }

    async fn recycle(&self, client: &mut ClientWrapper, _: &Metrics) -> RecycleResult<OpenError> {
        match client.is_closed() {
            true => Err(RecycleError::message("the connection is closed")),
            false => Ok(()),
        }
    }
}

fn not_connected(error: PoolError<OpenError>) -> StoreError {
    match error {
        PoolError::Timeout(TimeoutType::Wait) => StoreError::Overloaded,
        PoolError::Backend(error) => StoreError::unavailable(error),
        error => StoreError::unavailable(error),
    }
}

impl Deref for Connection {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.client
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Object {
        &mut self.client
    }
}
