//! The store of a cluster: PostgreSQL.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | what can be configured; why opening fails | `options`, `error` |
//! | the server's time without asking | `clock` |
//! | the hosts of a connection string, one after the other | `hosts` |
//! | connections, and the check that the server's commits are durable | `connect` |
//! | who gets a connection, and the one for authentication | `connections` |
//! | the schema | `migrations/`, applied by `migrations` |
//! | conversion between the port's types and rows | `rows` |
//! | reads | `reads` |
//! | what is due, claimed by one node at a time | `claims` |
//! | what commits have changed; tenants as a whole | `noted`, `tenants` |
//! | which tenants were moved from here or to here | `residences` |
//! | the months of the audit log | `audit` |
//! | payloads over 64 KB, written before their commit | `large_payloads` |
//! | changes that wait for a writer, by tenant | `queue` |
//! | which guards hold, what a batch writes | `plan` |
//! | the SQL of a commit, its parameters, its two round trips | `statements`, `columns`, `commit` |
//! | batches, retries, replies | `writer` |
//! | a tenant on its way to another database | `cargo` |
//! | the [`Store`](countersign_core::store::Store) itself | `store` |
//!
//! `store-sqlite` has the same files, except that one writer needs neither `plan`, `statements` and `columns` nor
//! `large_payloads`.
//!
//! Connect in session mode only: prepared statements and the migration lock do not work with a pooler that assigns
//! sessions per transaction.

mod clock;
mod error;
mod hosts;
mod options;

mod connect;

mod connections;

mod migrations;

mod rows;

mod reads;

mod audit;
mod claims;
mod large_payloads;
mod noted;
mod residences;
mod tenants;

mod queue;

mod plan;

mod columns;
mod commit;
mod statements;

mod writer;

mod cargo;

mod store;

#[cfg(test)]
mod explain;

pub use error::OpenError;
pub use options::Options;
pub use store::PostgresStore;
