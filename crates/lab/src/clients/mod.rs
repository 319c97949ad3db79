//! What talks to the servers: plain sockets, the same for ours and for the peer.

pub(crate) mod arrivals;
pub(crate) mod http;
pub(crate) mod messages;
pub(crate) mod publishers;
pub(crate) mod subscribers;
