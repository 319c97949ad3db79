//! A credential that is revoked or over ends all that it holds.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::{
    client, submit,
    support::{
        client::Client,
        messages::soon,
        process::{Gateway, On, Second, program},
        sse::Stream,
        ws::Socket,
    },
};

/// A socket, a stream and a wait, all of one key, end when the key is revoked, by whatever way.
async fn revoked(gateway: &Gateway, at: &Client, revoke: impl AsyncFnOnce(&str)) {
    let key = json!({ "role": "enforcer", "id": "robot" });
    ended(gateway, at, &key, revoke, Duration::from_secs(20)).await;
}

/// As [`revoked`], for such a key, so soon after `end` has returned.
async fn ended(
    gateway: &Gateway,
    at: &Client,
    key: &serde_json::Value,
    end: impl AsyncFnOnce(&str),
    limit: Duration,
) {
    let operator = client(gateway, "acme", "operator");
    let made = operator.post("/platform/v1/keys", key.to_string()).await.expect(201).json();
    let enforcer = at.with_key(made["key"].as_str().unwrap());
    submit(&enforcer, "r").await;
    let mut socket = Socket::open(&enforcer, "enforcer", "robot").await;
    let mut stream = Stream::open(&enforcer, "/v1/sse/enforcers/robot", None).await;
    let waiting = tokio::spawn({
        let enforcer = enforcer.clone();
        async move { enforcer.get("/v1/exchanges/r/wait?timeout=60").await }
    });
    // A ticket that was made before is void too.
    let ticket = enforcer.post("/platform/v1/tickets", "{}").await.expect(200).json();
    sleep(Duration::from_millis(300)).await;
    end(made["keyId"].as_str().unwrap()).await;
    let since = Instant::now();
    assert_eq!(timeout(limit, socket.closed()).await.unwrap(), Some(1008));
    timeout(limit, async { while stream.next().await.is_some() {} }).await.unwrap();
    timeout(limit, waiting).await.unwrap().unwrap().expect(401);
    assert!(since.elapsed() < limit, "{:?}", since.elapsed());
    let protocol = format!("ticket.{}", ticket["ticket"].as_str().unwrap());
    let entered = Socket::connect(&at.without_key(), "?role=enforcer&id=robot", Some(&protocol)).await;
    assert_eq!(entered.err(), Some(401));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_ends_all_that_it_holds() {
    let gateway = Gateway::start(On::Sqlite);
    let operator = client(&gateway, "acme", "operator");
    revoked(&gateway, &operator, async |key_id| {
        operator.delete(&format!("/platform/v1/keys/{key_id}")).await.expect(200);
    })
    .await;
}

async fn expired(gateway: &Gateway, at: &Client) {
    let valid = Duration::from_secs(15);
    let key = json!({ "role": "enforcer", "id": "robot", "expiresAt": soon(15_000) });
    let since = Instant::now();
    ended(gateway, at, &key, async |_| sleep_until(since + valid).await, Duration::from_secs(20)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_key_ends_all_that_it_holds() {
    let gateway = Gateway::start(On::Sqlite);
    let operator = client(&gateway, "acme", "operator");
    expired(&gateway, &operator).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_key_ends_all_that_it_holds_on_another_node() {
    let gateway = Gateway::start(On::Postgres);
    let operator = client(&gateway, "acme", "operator");
    let log = std::sync::Arc::default();
    let mut second = Second::start(&gateway.config, &log);
    expired(&gateway, &Client { address: second.address, ..operator }).await;
    second.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_with_the_command_ends_all_that_it_holds() {
    let gateway = Gateway::start(On::Sqlite);
    let operator = client(&gateway, "acme", "operator");
    revoked(&gateway, &operator, async |key_id| {
        let mut command = program();
        command.args(["keys", "revoke", "--config"]).arg(&gateway.config);
        let done = command.args(["--tenant", "acme", "--key", key_id]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_on_one_node_ends_all_that_it_holds_on_another() {
    let gateway = Gateway::start(On::Postgres);
    let operator = client(&gateway, "acme", "operator");
    let log = std::sync::Arc::default();
    let mut second = Second::start(&gateway.config, &log);
    let there = Client { address: second.address, ..operator.clone() };
    revoked(&gateway, &there, async |key_id| {
        operator.delete(&format!("/platform/v1/keys/{key_id}")).await.expect(200);
    })
    .await;
    second.stop();
}

/// Ends every connection of the gateways to PostgreSQL, twenty times a second, for so many seconds.
fn disturb(postgres_url: &str, seconds: u32) -> std::process::Child {
    let loops = seconds * 20;
    let statement = format!(
        "DO $$ BEGIN FOR i IN 1..{loops} LOOP PERFORM pg_stat_clear_snapshot(); \
         PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'countersign'; \
         PERFORM pg_sleep(0.05); END LOOP; END $$"
    );
    std::process::Command::new("psql").args([postgres_url, "-qc", &statement]).spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_revoked_on_another_node_while_the_store_fails_are_closed_within_fifteen_seconds() {
    let gateway = Gateway::start(On::Postgres);
    let operator = client(&gateway, "acme", "operator");
    let log = std::sync::Arc::default();
    let mut second = Second::start(&gateway.config, &log);
    let there = Client { address: second.address, ..operator.clone() };
    let mut held = Vec::new();
    for number in 0..100 {
        let key = json!({ "role": "approver", "id": format!("a{number}") });
        let made = operator.post("/platform/v1/keys", key.to_string()).await.expect(201).json();
        let approver = there.with_key(made["key"].as_str().unwrap());
        let socket = Socket::open(&approver, "approver", &format!("a{number}")).await;
        held.push((made["keyId"].as_str().unwrap().to_owned(), socket));
    }
    // The other node has polled all of them once.
    sleep(Duration::from_secs(6)).await;
    for (key_id, _) in &held {
        operator.delete(&format!("/platform/v1/keys/{key_id}")).await.expect(200);
    }
    let revoked = Instant::now();
    let mut disturbance = disturb(&gateway.postgres.as_ref().unwrap().url(), 8);
    let closing = held.iter_mut().map(|(_, socket)| async {
        let open = async { while socket.next().await.is_ok() {} };
        timeout(Duration::from_mins(1), open).await.expect("it is never closed");
        revoked.elapsed()
    });
    let mut times = join_all(closing).await;
    times.sort_unstable();
    println!("100 revocations while the store fails: closed after {:?} to {:?}", times[0], times[99]);
    // Fifteen seconds are promised, ten are for a slow machine.
    assert!(times[99] < Duration::from_secs(25), "{times:?}");
    assert!(disturbance.wait().unwrap().success());
    second.stop();
}
