//! The store of a single node: one SQLite file.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | the store's time | `clock` |
//! | what can be configured; why opening fails, SQLite's errors | `options`, `error` |
//! | connections, with the settings that make a commit durable | `connect` |
//! | the schema | `migrations/`, applied by `migrations` |
//! | conversion between the port's types and rows | `rows` |
//! | reads, and their connections | `reads` with `queries/`, `pool` |
//! | what is due, claimed by one node at a time | `claims` |
//! | what commits have changed; tenants as a whole | `noted`, `tenants` |
//! | old rows of the audit log | `audit` |
//! | one change: guards, records, payloads, deliveries | `mailboxes`, `commit` |
//! | several changes in one transaction | `batch` |
//! | changes that wait for the writer, by tenant | `queue` |
//! | the writer's thread, replies | `writer` |
//! | the [`Store`](countersign_core::store::Store) itself | `store` |
//!
//! `store-postgres` has the same files, except that it plans a batch in memory (`plan`, `statements`, `columns`) instead of
//! writing change by change.

mod clock;

mod error;
mod options;

mod connect;

mod migrations;

mod rows;

mod pool;
mod reads;

mod audit;
mod claims;
mod commit;
mod mailboxes;
mod noted;
mod tenants;

mod batch;

mod queue;

mod writer;

mod store;

pub use clock::{Clock, ManualClock, SystemClock};
pub use error::OpenError;
pub use options::Options;
pub use store::SqliteStore;
