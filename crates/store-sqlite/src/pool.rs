//! Pooled connections for reading. Each serves one read at a time, on a blocking thread.

use std::{path::PathBuf, sync::Arc, time::Duration};

use countersign_core::store::StoreError;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::{sync::Semaphore, task};

use crate::{connect, error::store_error};

#[derive(Debug)]
pub(crate) struct Pool {
    connections: Arc<Connections>,
    permits: Arc<Semaphore>,
    /// For authentication, beside the others.
    reserved: Arc<Semaphore>,
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
            permits: Arc::new(Semaphore::new(size.max(1))),
            reserved: Arc::new(Semaphore::new(1)),
        }
    }

    /// Runs `query` in one snapshot of the database.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read_with(&self.permits, query).await
    }

    /// As [`Pool::read`], to find out who a client is: it waits behind no other read.
    pub(crate) async fn read_reserved<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read_with(&self.reserved, query).await
    }

    async fn read_with<T: Send + 'static>(
        &self,
        permits: &Arc<Semaphore>,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = permits.clone().acquire_owned().await.map_err(StoreError::unavailable)?;
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
                pool.read(block).await
            });
        }
        let mut count = 0;
        while count < 2 {
            count += is_blocked.try_iter().count();
            task::yield_now().await;
        }
        let one = |conn: &Connection| conn.query_row("SELECT 1", [], |row| row.get::<_, i64>(0));
        let other = timeout(Duration::from_millis(200), pool.read(one)).await;
        assert!(other.is_err(), "all others are busy");
        assert_eq!(timeout(Duration::from_secs(5), pool.read_reserved(one)).await.unwrap(), Ok(1));
        drop(ends);
        assert_eq!(pool.read(one).await, Ok(1));
    }
}
