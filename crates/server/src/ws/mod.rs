//! WebSockets: the handshake, the loop, what is done with a frame, and the pure rules of a session.

pub(crate) mod connection;
pub(crate) mod handshake;

mod dispatch;
mod metering;
mod session;
