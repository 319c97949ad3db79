//! Clients on plain sockets, the same for our gateway and for Nchan.

pub(crate) mod arrivals;
pub(crate) mod http;
pub(crate) mod messages;
pub(crate) mod publishers;
pub(crate) mod subscribers;
