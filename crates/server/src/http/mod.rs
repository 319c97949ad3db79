//! How the gateway is reached over HTTP. One request: `accept → connection → router → caller (auth) →
//! received (size, shape) → operation → use case → answer`.

pub mod accept;
pub mod rates;
pub mod router;

pub(crate) mod answer;
pub(crate) mod connection;
pub(crate) mod cursor;
pub(crate) mod error_response;
pub(crate) mod held;
pub(crate) mod leftover;
pub(crate) mod log;
pub(crate) mod operations;
pub(crate) mod params;
pub(crate) mod received;
pub(crate) mod request_id;
pub(crate) mod routes;
pub(crate) mod shares;

/// The protocol's media type.
pub(crate) const PROTO_JSON: &str = "application/proto+json";
