//! The gateway as a service: starting, stopping, holding, limits, a store that goes away.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod acme;
mod client_certificates;
mod commands;
mod log;
mod notify;
mod rates;
mod running;
mod shards;
mod tls;

use support::{client::Client, process::Gateway};

/// An enforcer and an approver of one tenant.
fn clients(gateway: &Gateway) -> (Client, Client) {
    let enforcer = Client::new(gateway.address, &gateway.key("acme", "enforcer", None));
    (enforcer, Client::new(gateway.address, &gateway.key("acme", "approver", None)))
}
