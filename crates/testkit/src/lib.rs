//! For tests only: the conformance suite that every store runs, private servers, fixtures.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a case fails by panicking"
)]

pub mod child_process;
pub mod crash;
pub mod doorbell_suite;
pub mod gateway_suite;
pub mod nats;
pub mod postgres;
pub mod random;
pub mod recording_store;
pub mod sharded;
pub mod store_suite;
