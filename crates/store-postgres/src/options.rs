//! How to open the store.

use std::{path::PathBuf, time::Duration};

/// How to open the store.
#[derive(Debug, Clone)]
pub struct Options {
    /// A libpq connection string. Several hosts with `target_session_attrs=read-write` find the primary.
    pub url: String,
    /// The certificates of those who may vouch for the server, in a PEM file. With it every connection is
    /// encrypted and the server's name checked; without it connections are in the clear.
    pub root_certificates: Option<PathBuf>,
    /// Transactions that write at the same time. Two keep two cores busy; more only adds waiting.
    pub writers: usize,
    /// Whether changes that wait together are committed together. Off only to measure what it wins.
    pub batching: bool,
    /// Changes that may wait for a writer; one more is refused. A single tenant gets at most half of it.
    pub queue: usize,
    /// Connections for reading.
    pub readers: usize,
    /// After how long the server gives up a statement. It does not cut a commit short.
    pub statement_timeout: Duration,
}

impl Options {
    /// The defaults, for this connection string.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            root_certificates: None,
            writers: 2,
            batching: true,
            queue: 4096,
            readers: 6,
            statement_timeout: Duration::from_secs(10),
        }
    }
}
