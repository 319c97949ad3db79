//! What one client can't do to the others: take their connections, their memory, their answers, or stay when it is
//! unwanted.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod connections;
mod memory;
mod revocation;

use std::time::Duration;

use support::{client::Client, messages::submission, process::Gateway};
use tokio::{io::AsyncReadExt as _, net::TcpStream, time::timeout};

fn client(gateway: &Gateway, tenant: &str, role: &str) -> Client {
    Client::new(gateway.address, &gateway.key(tenant, role, None))
}

async fn submit(enforcer: &Client, id: &str) {
    enforcer.post("/v1/artifacts", submission(id, "robot", "ada").to_string()).await.expect(202);
}

/// Everything that comes until the connection ends, for so long at most. Says whether it ended.
async fn all_of(stream: &mut TcpStream, longest: Duration) -> (String, bool) {
    let mut answer = Vec::new();
    let ended = timeout(longest, stream.read_to_end(&mut answer)).await.is_ok();
    (String::from_utf8_lossy(&answer).into_owned(), ended)
}
