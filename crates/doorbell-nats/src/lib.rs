//! The doorbell between the nodes of a cluster: core NATS.
//!
//! Each line imports only from the lines above it; a test keeps it so.
//!
//! | to find | look in |
//! |---|---|
//! | how NATS is reached, and what is refused | [`options`], [`error`], `connect` |
//! | what is counted | [`counters`] |
//! | what a message says, in bytes; on which subjects | [`mod@format`], `subjects` |
//! | keys, and what is around each message | `seal` |
//! | whose messages count, and which of them; what follows when some were lost | `peers`, `comparison` |
//! | what waits to be sent, and how it becomes a batch | `outbox`, `publisher` |
//! | what arrives | `intake` |
//! | the doorbell itself | [`doorbell`] |
//!
//! Everything that NATS carries was durable before, and may get lost. Whoever reaches NATS can neither read nor invent it,
//! and what is sent again is dropped: `docs/adr/0020-the-doorbell-between-nodes-is-encrypted.md`.

pub mod counters;
pub mod error;
pub mod options;

pub mod format;

mod comparison;
mod connect;
mod peers;
mod seal;
mod subjects;

mod outbox;

mod intake;
mod publisher;

pub mod doorbell;

pub use doorbell::NatsDoorbell;
pub use error::OpenError;
pub use options::Options;
