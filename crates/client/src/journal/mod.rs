//! What an enforcer must not forget: which decisions it has used and how often, what it has asked, and what it did. It is on
//! disk before anything rests on it.
//!
//! A journal is a set of records, each of a [`Kind`] and with a key. A commit changes several of them or none, and is
//! durable when it returns. What is recorded is forgotten when its time has passed, and not before.

mod bundle_folder;
mod file;
mod index;
mod memory;
mod port;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use self::port::nonce_record;
pub use self::{
    file::FileJournal,
    memory::MemoryJournal,
    port::{Change, Commit, Journal, JournalError, Kind, Record, Retention},
};

/// Works with a journal on a thread that may block. What was begun is finished also when the caller is dropped.
pub(crate) async fn off_thread<T: Send + 'static>(
    journal: &Arc<dyn Journal>,
    work: impl FnOnce(&dyn Journal) -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    let journal = Arc::clone(journal);
    let done = tokio::task::spawn_blocking(move || work(&*journal)).await;
    done.unwrap_or(Err(JournalError::Thread))
}
