//! Pooled connections for reading. Each serves one read at a time, on a blocking thread.

use std::{path::PathBuf, sync::Arc, time::Duration};

use countersign_core::{
    fair::{FairPermit, FairSemaphore},
    store::StoreError,
};
use countersign_wire::id::TenantId;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::task;

use crate::{connect, error::store_error};

#[derive(Debug)]
pub(crate) struct Pool {
    connections: Arc<Connections>,
    /// Given to tenants in turn.
    permits: FairSemaphore,
    /// For authentication, beside the others.
    reserved: FairSemaphore,
}

#[derive(Debug)]
struct Connections {
    path: PathBuf,
    busy_timeout: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    /// Opens up to `size` connections, and one for authentication, each when it is first needed.
    pub(crate) fn new(path: PathBuf, busy_timeout: Duration, size: usize) -> Self {
        let connections = Connections { path, busy_timeout, idle: Mutex::default() };
        Self {
            connections: Arc::new(connections),
            permits: FairSemaphore::new(size.max(1)),
            reserved: FairSemaphore::new(1),
        }
    }

    /// Runs `query` in one snapshot of the database, when it is this tenant's turn.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        of: &TenantId,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read_with(self.permits.acquire(of).await, query).await
    }

    /// As [`Pool::read`], for what is not about one tenant.
    pub(crate) async fn read_for_all<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read_with(self.permits.acquire_for_all().await, query).await
    }

    /// As [`Pool::read`], to find out who a client is: it waits behind no other read.
    pub(crate) async fn read_reserved<T: Send + 'static>(
        &self,
        of: &TenantId,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read_with(self.reserved.acquire(of).await, query).await
    }

    async fn read_with<T: Send + 'static>(
        &self,
        permit: FairPermit,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
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
        let idle = self.idle.lock().pop();
        let conn = match idle {
            Some(conn) => conn,
            None => connect::for_reading(&self.path, self.busy_timeout)?,
        };
        let result = conn.unchecked_transaction().and_then(|snapshot| query(&snapshot));
        // If the query panics, its connection is dropped, and a later read opens a new one.
        self.idle.lock().push(conn);
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_read_for_authentication_waits_behind_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("db");
        Connection::open(&file).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        let pool = Arc::new(Pool::new(file, Duration::from_secs(1), 2));
        let (blocked, is_blocked) = mpsc::channel();
        let mut ends = Vec::new();
        for _ in 0..4 {
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            let (pool, blocked) = (Arc::clone(&pool), blocked.clone());
            tokio::spawn(async move {
                let block = move |_: &Connection| {
                    blocked.send(()).unwrap();
                    let _ = ended.recv();
                    Ok(())
                };
                pool.read_for_all(block).await
            });
        }
        let mut count = 0;
        while count < 2 {
            count += is_blocked.try_iter().count();
            task::yield_now().await;
        }
        let one = |conn: &Connection| conn.query_row("SELECT 1", [], |row| row.get::<_, i64>(0));
        let other = timeout(Duration::from_millis(200), pool.read_for_all(one)).await;
        assert!(other.is_err(), "all others are busy");
        assert_eq!(
            timeout(Duration::from_secs(5), pool.read_reserved(&"acme".parse().unwrap(), one)).await.unwrap(),
            Ok(1)
        );
        drop(ends);
        assert_eq!(pool.read_for_all(one).await, Ok(1));
    }
}
