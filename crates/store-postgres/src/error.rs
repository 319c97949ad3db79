//! Why the store can't be opened. The driver's errors become the port's by `StoreError::unavailable`.

use std::{error::Error, path::PathBuf, time::Duration};

use countersign_core::store::{StoreError, migrations::MigrationError};
use tokio_postgres::error::SqlState;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The text does not repeat the connection string, which may contain a password.
    #[error("the connection string can't be parsed")]
    Url(#[source] tokio_postgres::Error),
    #[error("the password in {} can't be read", file.display())]
    Password { file: PathBuf, source: std::io::Error },
    #[error("the connection string has a password, and there is a file with one: remove one of them")]
    TwoPasswords,
    #[error("the root certificates in {} can't be used", file.display())]
    RootCertificates { file: PathBuf, source: Box<dyn Error + Send + Sync> },
    /// Names the host by its position: a connection string that was misread could have a password in its place.
    #[error(
        "host {position} of the connection string is not this machine, and without TLS everybody on the network between \
         can read and change what the gateway stores. Set root_certificates to a file with the authorities that sign the \
         server's certificate. If the network is protected by other means, set allow_plain = true"
    )]
    Plain { position: usize },
    /// Only `root_certificates` makes connections encrypted; the setting of libpq would be ignored.
    #[error(
        "the connection string has sslmode=require, which needs root_certificates: a file with the authorities that sign \
         the server's certificate. To connect without TLS, remove sslmode"
    )]
    NoRootCertificates,
    #[error("the connection pool can't be created")]
    Pool(#[from] deadpool::managed::BuildError),
    /// The server can't be reached, or rejects a statement.
    #[error("PostgreSQL can't be used")]
    Engine(#[source] tokio_postgres::Error),
    /// `others` is what the last of the other hosts said.
    #[error("PostgreSQL can't be used: {hosts} did not answer in time, {} s each", within.as_secs())]
    Silent {
        hosts: String,
        within: Duration,
        #[source]
        others: Option<tokio_postgres::Error>,
    },
    #[error(
        "PostgreSQL has no connection left. Each node uses up to store.connections; with those of all nodes, and three that \
         the server keeps for superusers, they must not be more than its max_connections. Lower store.connections or raise \
         max_connections"
    )]
    NoConnectionLeft(#[source] tokio_postgres::Error),
    /// The server acknowledges commits before they are durable.
    #[error("the server would lose acknowledged decisions: {setting} is {value}; {remedy}")]
    Unsafe { setting: &'static str, value: String, remedy: &'static str },
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// What was read can't be what this program has written.
    #[error(transparent)]
    Record(#[from] StoreError),
}

impl OpenError {
    /// Whether it may be different later without anybody changing a setting: no server has answered, or it is just starting
    /// or stopping.
    pub fn is_away(&self) -> bool {
        match self {
            Self::Silent { .. } | Self::NoConnectionLeft(_) => true,
            Self::Engine(error) => {
                error.as_db_error().is_none_or(|error| error.code().code().starts_with("57P"))
            }
            _ => false,
        }
    }
}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(code) if *code == SqlState::TOO_MANY_CONNECTIONS => Self::NoConnectionLeft(error),
            _ => Self::Engine(error),
        }
    }
}
