//! Opening: connect, check that the server keeps what it says, migrate, start the writers.

use std::{sync::Arc, time::Duration};

use deadpool_postgres::Pool;
use tokio_postgres::Client;

use crate::{
    Options, PostgresStore, connector::Connector, lane::Lane, queue::Queue, reads::Reads, schema, writer,
};

/// Why the store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The connection string can't be read.
    #[error("the connection string can't be read: {0}")]
    Url(String),
    /// The server can't be reached or refuses.
    #[error("PostgreSQL can't be used: {0}")]
    Server(#[from] tokio_postgres::Error),
    /// The file of root certificates can't be used.
    #[error("the root certificates in {file} can't be used: {fault}")]
    RootCertificates {
        /// Which file.
        file: String,
        /// Why.
        fault: String,
    },
    /// The connection pool can't be made.
    #[error("the connection pool can't be made: {0}")]
    Pool(String),
    /// The server would acknowledge what it can lose.
    #[error("the server would lose acknowledged decisions: {setting} is {value}; {remedy}")]
    Unsafe {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A newer version has migrated the schema.
    #[error("the schema is at version {found}, this program knows {known}; use a newer program")]
    SchemaNewer {
        /// What the database has.
        found: i32,
        /// What this program knows.
        known: i32,
    },
    /// A migration that was applied is not the one in this program.
    #[error("migration {number} in the database is not the one in this program")]
    MigrationChanged {
        /// Which one.
        number: i32,
    },
}

impl PostgresStore {
    /// Connects and refuses what is not safe, and changes nothing.
    pub async fn probe(options: &Options) -> Result<(), OpenError> {
        let (client, _) = Connector::new(options)?.connect().await?;
        refuse_unsafe(&client).await
    }

    /// Connects, refuses what is not safe, migrates, and starts the writers.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let connector = Connector::new(&options)?;
        let (mut client, _) = connector.connect().await?;
        refuse_unsafe(&client).await?;
        schema::migrate(&mut client).await?;
        drop(client);

        let pool = Pool::builder(connector.manager())
            .max_size(options.readers)
            .runtime(deadpool_postgres::Runtime::Tokio1)
            .wait_timeout(Some(Duration::from_secs(10)))
            .create_timeout(Some(Duration::from_secs(5)))
            .build()
            .map_err(|error| OpenError::Pool(error.to_string()))?;

        let queues: Vec<Arc<Queue>> = (0..options.writers.max(1))
            .map(|_| Arc::new(Queue::new(options.queue, options.batching)))
            .collect();
        for queue in &queues {
            tokio::spawn(writer::run(connector.clone(), Arc::clone(queue)));
        }
        Ok(Self { queues, lane: Lane::new(pool.clone()), reads: Reads::new(pool) })
    }
}

/// Refuses a server on which a commit that was acknowledged can be lost.
pub(crate) async fn refuse_unsafe(client: &Client) -> Result<(), OpenError> {
    let row = client
        .query_one(
            "SELECT current_setting('fsync'), current_setting('synchronous_commit'), \
             current_setting('synchronous_standby_names')",
            &[],
        )
        .await?;
    let (fsync, synchronous_commit, standbys): (String, String, String) =
        (row.get(0), row.get(1), row.get(2));
    if fsync != "on" {
        return Err(OpenError::Unsafe { setting: "fsync", value: fsync, remedy: "set it to on" });
    }
    let enough = match standbys.is_empty() {
        true => synchronous_commit != "off",
        // `local` does not wait for the standby, `remote_write` not for its disk.
        false => synchronous_commit == "on" || synchronous_commit == "remote_apply",
    };
    match enough {
        true => Ok(()),
        false => Err(OpenError::Unsafe {
            setting: "synchronous_commit",
            value: synchronous_commit,
            remedy: "set it to on",
        }),
    }
}
