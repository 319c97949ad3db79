//! The store of a single node: one SQLite file.
//!
//! All changes go through one writer (`writer`), which takes whatever waits, writes it in one transaction
//! (`batch`, `commit`, `mailboxes`) and answers when it is durable. Reads (`reads`) have connections of their
//! own (`pool`) and never wait for the writer. `open` and `schema` prepare the file, `rows` translates.

mod batch;
mod clock;
mod commit;
mod mailboxes;
mod open;
mod options;
mod pool;
mod reads;
mod rows;
mod schema;
mod store;
mod writer;

pub use clock::{Clock, ManualClock, SystemClock};
pub use open::OpenError;
pub use options::Options;
pub use store::SqliteStore;
