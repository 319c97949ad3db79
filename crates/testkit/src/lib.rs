//! For tests only. Each line imports only from its own lines and those above; a test keeps it so.
//!
//! | to find | look in |
//! |---|---|
//! | the lock of a device | [`authenticator`] |
//! | child processes and ports; randomness with a seed; a store that counts | [`child_process`], [`random`], [`recording_store`] |
//! | processes that are killed while they commit | [`crash`] |
//! | what every doorbell must do | [`doorbell_suite`] |
//! | private servers | [`nats`], [`postgres`] |
//! | what every store must do: alone, under a gateway, over two databases | [`store_suite`], [`gateway_suite`], [`sharded`] |

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a case fails by panicking"
)]

pub mod authenticator;
pub mod child_process;
pub mod random;
pub mod recording_store;

pub mod crash;
pub mod doorbell_suite;
pub mod nats;
pub mod postgres;

pub mod gateway_suite;
pub mod sharded;
pub mod store_suite;
