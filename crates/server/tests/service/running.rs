//! Waits, the end of the service, a store that goes away, two nodes.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use crate::{
    clients,
    support::{
        client::{Client, exchange},
        messages::{approval, submission},
        metrics::Watched,
        polling::until,
        process::{Gateway, On},
    },
};

async fn waits(count: usize, on: On) {
    let gateway = Gateway::start(on);
    let (enforcer, approver) = clients(&gateway);
    let ids: Vec<String> = (0..count).map(|number| format!("wait-{number}")).collect();
    join_all(ids.iter().map(async |id| {
        enforcer.post("/v1/artifacts", submission(id, "robot", "ada").to_string()).await.expect(202);
    }))
    .await;
    let waiting: Vec<_> = ids
        .iter()
        .map(|id| {
            let (enforcer, path) = (enforcer.clone(), format!("/v1/exchanges/{id}/wait?timeout=60"));
            tokio::spawn(async move { enforcer.get(&path).await })
        })
        .collect();
    // A decision that comes before its wait is found by it, so nothing here depends on who is first.
    for some in ids.chunks(50) {
        join_all(some.iter().map(async |id| {
            approver.post("/v1/decisions", approval(id, "ada").to_string()).await.expect(200);
        }))
        .await;
    }
    for (id, waited) in ids.iter().zip(waiting) {
        let answer = timeout(Duration::from_secs(45), waited).await.expect("no wait is stuck").unwrap();
        let answer = answer.expect(200).json();
        assert_eq!((&answer["msgType"], &answer["requestId"]), (&json!("decision.deliver"), &json!(id)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waits_at_once_are_all_answered_on_sqlite() {
    waits(1_000, On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waits_at_once_are_all_answered_on_postgres() {
    waits(1_000, On::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_is_answered_soon_after_the_decision() {
    let gateway = Gateway::start(On::Sqlite);
    let (enforcer, approver) = clients(&gateway);
    let mut delays = Vec::new();
    for number in 0..50 {
        let id = format!("soon-{number}");
        enforcer.post("/v1/artifacts", submission(&id, "robot", "ada").to_string()).await.expect(202);
        let (waiter, path) = (enforcer.clone(), format!("/v1/exchanges/{id}/wait?timeout=60"));
        let waiting = tokio::spawn(async move {
            waiter.get(&path).await.expect(200);
            Instant::now()
        });
        sleep(Duration::from_millis(20)).await;
        approver.post("/v1/decisions", approval(&id, "ada").to_string()).await.expect(200);
        let decided = Instant::now();
        delays.push(waiting.await.unwrap().saturating_duration_since(decided));
    }
    delays.sort();
    println!("decision accepted -> wait answered: median {:?}, worst {:?}", delays[25], delays[49]);
    // What is certain on a busy machine: it is woken and does not look by itself every so often.
    assert!(delays[25] < Duration::from_millis(250), "{delays:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_are_answered_early_when_the_gateway_stops_and_it_ends_well() {
    let mut watched = Watched::start(On::Sqlite, "").await;
    let (enforcer, _) = clients(&watched.gateway);
    enforcer.post("/v1/artifacts", submission("r", "robot", "ada").to_string()).await.expect(202);
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let enforcer = enforcer.clone();
            tokio::spawn(async move { enforcer.get("/v1/exchanges/r/wait?timeout=60").await })
        })
        .collect();
    watched.expect(&[("countersign_held_connections{transport=\"wait\"}", 100.0)]).await;
    let stopped_at = Instant::now();
    watched.gateway.terminate();
    for waited in waiting {
        let answer = timeout(Duration::from_secs(30), waited).await.expect("no wait is stuck").unwrap();
        assert_eq!(answer.expect(204).header("proto-exchange-state"), "pendingApproval");
    }
    assert!(tokio::task::block_in_place(|| watched.gateway.ended()));
    assert!(stopped_at.elapsed() < Duration::from_secs(30), "{:?}", stopped_at.elapsed());
    watched.gateway.expect_drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_will_stop_is_not_ready_and_serves_until_the_notice_is_over() {
    let mut gateway = Gateway::start_with(On::Sqlite, "[health]\nstop_notice_seconds = 3");
    let (enforcer, _) = clients(&gateway);
    let nobody = enforcer.without_key();
    nobody.get("/readyz").await.expect(200);
    let stopped_at = Instant::now();
    gateway.terminate();
    until("not ready", 2, || async { nobody.get("/readyz").await.status == 503 }).await;
    enforcer.post("/v1/artifacts", submission("late", "robot", "ada").to_string()).await.expect(202);
    assert!(tokio::task::block_in_place(|| gateway.ended()));
    assert!(stopped_at.elapsed() >= Duration::from_secs(3), "{:?}", stopped_at.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_notice() {
    let mut gateway = Gateway::start_with(On::Sqlite, "[health]\nstop_notice_seconds = 3600");
    let (enforcer, _) = clients(&gateway);
    gateway.terminate();
    until("not ready", 10, || async { enforcer.without_key().get("/readyz").await.status == 503 }).await;
    gateway.terminate();
    assert!(tokio::task::block_in_place(|| gateway.ended()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_goes_away_is_503_and_comes_back_by_itself() {
    let mut gateway = Gateway::start(On::Postgres);
    let (enforcer, _) = clients(&gateway);
    enforcer.post("/v1/artifacts", submission("before", "robot", "ada").to_string()).await.expect(202);
    gateway.postgres.as_mut().unwrap().kill();
    let body = submission("during", "robot", "ada").to_string();
    let refused = enforcer.post("/v1/artifacts", &body).await.refuse(503, "PROTO_ERR_UNAVAILABLE");
    assert_eq!((refused.header("retry-after"), &refused.body()["retryable"]), ("1", &json!(true)));
    let nobody = enforcer.without_key();
    until("not ready", 30, || async { nobody.get("/readyz").await.status == 503 }).await;
    nobody.get("/healthz").await.expect(200);
    gateway.postgres.as_mut().unwrap().start_again();
    until("it comes back", 30, || async { enforcer.post("/v1/artifacts", &body).await.status == 202 }).await;
    until("ready again", 30, || async { nobody.get("/readyz").await.status == 200 }).await;
    assert_eq!(enforcer.get("/v1/exchanges/before").await.expect(200).body()["state"], "pendingApproval");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_on_one_postgres_answer_each_others_waits() {
    let gateway = Gateway::start(On::Postgres);
    let (enforcer, _) = clients(&gateway);
    enforcer.post("/v1/artifacts", submission("r", "robot", "ada").to_string()).await.expect(202);
    let log = std::sync::Arc::default();
    let mut second = crate::support::process::Second::start(&gateway.config, &log);
    let approver = Client::new(second.address, &gateway.key("acme", "approver", None));
    let waiting = tokio::spawn({
        let enforcer = enforcer.clone();
        async move { enforcer.get("/v1/exchanges/r/wait?timeout=60").await }
    });
    sleep(Duration::from_millis(200)).await;
    approver.post("/v1/decisions", approval("r", "ada").to_string()).await.expect(200);
    // Its ring does not reach the other node; the change poller finds it.
    let answer =
        timeout(Duration::from_secs(30), waiting).await.expect("found by the change poller").unwrap();
    assert_eq!(answer.expect(200).json()["msgType"], "decision.deliver");
    second.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_nothing_or_too_much_is_let_go() {
    let gateway = Gateway::start(On::Sqlite);
    for text in [
        "GET / HTTP/1.1\r\n".to_owned() + &"x: y\r\n".repeat(100) + "\r\n",
        format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 20)),
    ] {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        drop(stream.write_all(text.as_bytes()).await);
        let mut answer = Vec::new();
        let ended = timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "the connection stays open after {} bytes", text.len());
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
    let alive =
        hyper::Request::get("/healthz").header("host", "g").body(http_body_util::Full::default()).unwrap();
    assert_eq!(exchange(gateway.address, alive).await.unwrap().status, 200);
}
