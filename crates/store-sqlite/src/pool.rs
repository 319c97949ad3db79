//! Pooled connections for reading. Each serves one read at a time, on a blocking thread.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_core::store::StoreError;
use rusqlite::Connection;
use tokio::{sync::Semaphore, task};

use crate::{connect, error::store_error};

#[derive(Debug)]
pub(crate) struct Pool {
    connections: Arc<Connections>,
    permits: Arc<Semaphore>,
}

#[derive(Debug)]
struct Connections {
    path: PathBuf,
    busy_timeout: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    /// Opens up to `size` connections, each when it is first needed.
    pub(crate) fn new(path: PathBuf, busy_timeout: Duration, size: usize) -> Self {
        let connections = Connections { path, busy_timeout, idle: Mutex::default() };
        Self { connections: Arc::new(connections), permits: Arc::new(Semaphore::new(size.max(1))) }
    }

    /// Runs `query` in one snapshot of the database.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = self.permits.clone().acquire_owned().await.map_err(StoreError::unavailable)?;
        let connections = self.connections.clone();
        let result = task::spawn_blocking(move || {
            let result = connections.read(query);
            drop(permit);
            result.map_err(store_error)
        });
        result.await.map_err(StoreError::unavailable)?
    }
}

impl Connections {
    fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let idle = self.idle().pop();
        let conn = match idle {
            Some(conn) => conn,
            None => connect::for_reading(&self.path, self.busy_timeout)?,
        };
        let result = conn.unchecked_transaction().and_then(|snapshot| query(&snapshot));
        // If the query panics, its connection is dropped, and a later read opens a new one.
        self.idle().push(conn);
        result
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
