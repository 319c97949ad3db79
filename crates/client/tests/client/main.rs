//! The client library at real gateways, honest and lying ones. One program: each would have the whole gateway in it.

#![expect(unreachable_pub, reason = "what is shared is public to the cases")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod again;
mod bring;
mod channels;
mod evil_gateway;
mod exchange;
mod gateway_words;
mod grants;
mod hostile_channel;
mod hostile_gateway;
mod journal;
mod locks;
mod network;
mod other_gateways;
mod payload_schema;
mod prompts;
mod receipts;
mod restarts;
mod status;
mod support;
mod vectors;
mod vouching;
