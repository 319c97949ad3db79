//! What REST and WebSocket share: operations on messages, and the envelopes that go out.

pub(crate) mod envelopes;
pub(crate) mod operations;
pub(crate) mod status;

mod steps;

/// The protocol's media type.
pub(crate) const PROTO_JSON: &str = "application/proto+json";
