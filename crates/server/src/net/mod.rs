//! Connections: accepted, put under TLS, served as HTTP/1, and taken out of HTTP where they are held for long.

pub mod listener;
pub mod tls;

pub(crate) mod connection;
pub(crate) mod socket;
pub(crate) mod stream;
pub(crate) mod takeover;

mod proxy_protocol;
