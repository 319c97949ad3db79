//! Clients on bare sockets, the same for our gateway and for Nchan.

pub(crate) mod arrivals;
pub(crate) mod callers;
pub(crate) mod http;
pub(crate) mod keep_alive;
pub(crate) mod messages;
pub(crate) mod publishers;
pub(crate) mod stream;
pub(crate) mod subscribers;
pub(crate) mod template;
pub(crate) mod websocket;
