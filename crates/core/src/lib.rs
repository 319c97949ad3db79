//! What the messages of a Countersign gateway mean.
//!
//! | to find | look in |
//! |---|---|
//! | what may happen to an exchange, a pairing, a prompt, a session | [`exchange`], [`pairing`], [`prompt`], [`session`], [`presence`]: pure |
//! | what a client can ask for | [`use_cases`], one file each |
//! | what is kept and how it is committed | [`store`], the first port |
//! | how others are woken | [`doorbell`], the second port |
//! | which channel is told | [`channels`] |
//! | what is pushed | [`feed`], [`message`] |
//! | what if a ring is lost | [`patrol`] |
//! | what time does | [`sweeper`] |
//!
//! No HTTP, no SQL, and no clock or chance of its own: the store's clock is the clock, and chance is
//! handed in as [`chance::Chance`].

pub mod chance;
pub mod channels;
pub mod doorbell;
pub mod error;
pub mod exchange;
pub mod feed;
pub mod gateway;
pub mod message;
pub mod pairing;
pub mod patrol;
pub mod policy;
pub mod presence;
pub mod prompt;
pub mod session;
pub mod store;
pub mod sweeper;
pub mod use_cases;

mod confirmed;
mod edges;
mod stored;

pub use error::Error;
pub use gateway::Gateway;
