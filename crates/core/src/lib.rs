//! What the messages of a Countersign gateway mean.
//!
//! Each line imports only from the lines above it; a test keeps it so.
//!
//! | to find | look in |
//! |---|---|
//! | what tenants share fairly | [`fair`] |
//! | what is counted and timed | [`metrics`] |
//! | what is stored and how it is committed: the first port | [`store`] |
//! | each stored type with its pure rules; the exchange state machine | [`model`] |
//! | how others are woken: the second port | [`notify`] |
//! | what can go wrong; how long things are kept | [`error`], [`retention`] |
//! | what each transition of an exchange writes; what a pair changes; what is audited | `transitions`, `couple`, `audit` |
//! | what a node remembers, so that nothing is read twice; what is known to be durable | [`cache`], `durability` |
//! | channels that are still to be closed; requests that somebody is to be notified of | `closings`, [`notices`] |
//! | load, evaluate, commit with retry | [`gateway`], `load` |
//! | what is handed over and rung after a commit | `announce`, `committed`, `compose` |
//! | expiry, tombstones, deletion | `lifecycle` |
//! | what a client can ask for | [`use_cases`], one file each |
//! | what is sent to clients | [`delivery`] |
//! | what runs when a time has passed | [`sweeper`] |
//! | what a node does beside requests | [`background`] |
//!
//! No HTTP, no SQL, and no clock or randomness of its own: the store's clock is the clock, and randomness is
//! an argument, [`random::RandomSource`].

pub mod fair;
pub mod metrics;

pub mod store;

pub mod model;

pub mod notify;

pub mod error;
pub mod random;
pub mod retention;

pub mod cache;

mod audit;
mod closings;
mod committed;
mod compose;
mod couple;
mod durability;
mod load;
pub mod notices;
mod transitions;
mod turns;

mod announce;
pub mod gateway;

mod lifecycle;

pub mod use_cases;

pub mod delivery;

pub mod sweeper;

pub mod background;

pub use error::Error;
pub use gateway::Gateway;
