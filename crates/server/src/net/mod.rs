//! Connections: accepted, served as HTTP/1, and taken out of HTTP where they are held for long.

pub mod listener;

pub(crate) mod connection;
pub(crate) mod socket;
pub(crate) mod takeover;
