//! WebSockets: the handshake, the loop, what is done with a frame, and what is written.

pub(crate) mod connection;
pub(crate) mod handshake;
pub(crate) mod output;

mod dispatch;
mod metering;
