//! Connections for reading: a few, each used by one question at a time, off the async threads.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_core::store::StoreError;
use rusqlite::Connection;
use tokio::{sync::Semaphore, task};

use crate::{open, rows::store_error};

#[derive(Debug)]
pub(crate) struct Pool {
    source: Arc<Source>,
    permits: Arc<Semaphore>,
}

/// Where connections come from and go back to.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    busy_timeout: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    /// A pool that opens up to `size` connections, each when it is first needed.
    pub(crate) fn new(path: PathBuf, busy_timeout: Duration, size: usize) -> Self {
        let source = Source { path, busy_timeout, idle: Mutex::default() };
        Self { source: Arc::new(source), permits: Arc::new(Semaphore::new(size.max(1))) }
    }

    /// Answers one question. All that it reads is of the same moment.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = self.permits.clone().acquire_owned().await.map_err(|error| unavailable(&error))?;
        let source = self.source.clone();
        let answer = task::spawn_blocking(move || {
            let answer = source.read(question);
            drop(permit);
            answer.map_err(|error| store_error(&error))
        });
        answer.await.map_err(|error| unavailable(&error))?
    }
}

impl Source {
    fn read<T>(&self, question: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let idle = self.idle().pop();
        let conn = match idle {
            Some(conn) => conn,
            None => open::for_reading(&self.path, self.busy_timeout)?,
        };
        let answer = conn.unchecked_transaction().and_then(|snapshot| question(&snapshot));
        // A connection whose question panicked doesn't come here, and a new one takes its place.
        self.idle().push(conn);
        answer
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unavailable(error: &impl ToString) -> StoreError {
    StoreError::unavailable(error.to_string())
}
