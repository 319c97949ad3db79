//! How many connections this process can have.

use tokio::sync::Semaphore;

/// File descriptors that connections must leave for everything else: the store, the log, the listener.
const RESERVED_FILES: u64 = 500;

/// How many connections this process can have open, by the limit of open files.
pub fn max_connections() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(1 << 20);
    usize::try_from(files.saturating_sub(RESERVED_FILES).max(files / 2))
        .unwrap_or(usize::MAX)
        .min(Semaphore::MAX_PERMITS)
}
