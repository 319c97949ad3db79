//! What can be configured when the store is opened.

use std::{path::PathBuf, time::Duration};

use countersign_core::metrics::WriterMetrics;

#[derive(Debug, Clone)]
pub struct Options {
    /// A libpq connection string. Several hosts with `target_session_attrs=read-write` find the primary.
    pub url: String,
    /// A file with the password, in place of one in `url`. It is read when the store is opened.
    pub password_file: Option<PathBuf>,
    /// A PEM file with the certificates of the authorities that may sign the server's certificate. If it is set,
    /// every connection is encrypted and the server's name is verified; otherwise connections are unencrypted.
    pub root_certificates: Option<PathBuf>,
    /// Whether connections to other machines may be unencrypted. Otherwise they are refused.
    pub allow_plain: bool,
    /// Concurrent write transactions. Two keep two cores busy; more only add lock waits.
    pub writers: usize,
    /// Whether changes that are queued at the same time share a transaction. Off only for measurements.
    pub batching: bool,
    /// Changes that may be queued per writer; one more is rejected as overload. A single tenant gets at most half.
    pub queued_changes: usize,
    /// Connections to the server that this handle uses at most: those of the writers, and at least two for reads, large
    /// payloads and the sweeper, of which one is kept for authentication.
    pub connections: usize,
    /// How long the server's time is estimated after it was last reported. Zero where the time is set, in tests.
    pub max_clock_age: Duration,
    /// When the server cancels a statement. It does not interrupt a commit.
    pub statement_timeout: Duration,
    /// Where the writers count what they do.
    pub metrics: WriterMetrics,
}

impl Options {
    /// The defaults, for this connection string.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password_file: None,
            root_certificates: None,
            allow_plain: false,
            writers: 2,
            batching: true,
            queued_changes: 4096,
            connections: 6,
            // A node's lease is renewed more often, which reports the time.
            max_clock_age: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(10),
            metrics: WriterMetrics::default(),
        }
    }
}
