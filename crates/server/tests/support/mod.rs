//! A gateway as a process of its own, and a client that knows nothing but HTTP.

#![expect(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

pub mod client;
pub mod messages;
pub mod metrics;
pub mod pebble;
pub mod polling;
pub mod process;
pub mod sse;
pub mod tls;
pub mod ws;
