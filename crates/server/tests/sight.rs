//! What an operator sees: metrics on a listener of their own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use serde_json::json;
use support::{
    client::Client,
    messages::{approval, decision_about, envelope, hash, soon, submission, withdrawal},
    metrics::{PATIENCE, Watched, get, sample},
    polling::until,
    process::{Gateway, On, resident_kib},
    ws::Socket,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

/// Names and labels of all samples.
fn series(text: &str) -> BTreeSet<String> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

fn step(name: &str) -> String {
    format!("countersign_exchange_step_seconds_count{{step=\"{name}\"}}")
}

async fn an_exchange_is_counted(on: On) {
    let watched = Watched::start(on, "").await;
    let (enforcer, approver) = (watched.client("enforcer"), watched.client("approver"));
    let mut ada = Socket::open(&approver, "approver", "ada").await;
    let mut robot = Socket::open(&enforcer, "enforcer", "robot").await;
    enforcer.post("/v1/artifacts", submission("one", "robot", "ada").to_string()).await.expect(202);
    assert_eq!(ada.message().await["msgType"], "approval.request");
    approver.post("/v1/decisions", approval("one", "ada").to_string()).await.expect(200);
    let delivered = robot.message().await;
    assert_eq!(delivered["msgType"], "decision.deliver");
    let ack = json!({ "msgId": delivered["msgId"] });
    robot.ask(&envelope("ack.submit", "one", json!({ "enforcerId": "robot" }), ack)).await;
    let steps = ["submit", "push", "decide", "deliver", "acknowledge"].map(step);
    let mut wanted: Vec<(&str, f64)> = steps.iter().map(|step| (step.as_str(), 1.0)).collect();
    wanted.extend([
        ("countersign_http_requests_total{route=\"/v1/artifacts\",status=\"202\"}", 1.0),
        ("countersign_http_requests_total{route=\"/v1/decisions\",status=\"200\"}", 1.0),
        ("countersign_held_connections{transport=\"websocket\"}", 2.0),
        ("countersign_push_seconds_count{transport=\"websocket\"}", 2.0),
        ("countersign_websocket_redeliveries_total", 0.0),
        ("countersign_store_queue_changes", 0.0),
    ]);
    let text = watched.expect(&wanted).await;
    for (name, at_least) in [
        ("countersign_store_calls_total{operation=\"commit\"}", 3.0),
        ("countersign_store_write_seconds_count", 3.0),
        ("countersign_store_batch_changes_sum", 3.0),
    ] {
        assert!(sample(&text, name).unwrap() >= at_least, "{name} in\n{text}");
    }
    assert!(sample(&text, "countersign_lease_age_seconds").unwrap() < 15.0);
    drop((ada, robot));
    watched
        .expect(&[
            ("countersign_held_connections{transport=\"websocket\"}", 0.0),
            ("countersign_http_requests_total{route=\"/v1/ws\",status=\"101\"}", 2.0),
        ])
        .await;
}

#[tokio::test]
async fn each_step_of_an_exchange_is_counted_once_on_sqlite() {
    an_exchange_is_counted(On::Sqlite).await;
}

#[tokio::test]
async fn each_step_of_an_exchange_is_counted_once_on_postgres() {
    an_exchange_is_counted(On::Postgres).await;
}

fn ended(outcome: &str) -> String {
    format!("countersign_requests_ended_total{{outcome=\"{outcome}\"}}")
}

const SUBMITTED: &str = "countersign_requests_submitted_total";
const DECIDED: &str = "countersign_decision_seconds_count";
const PENDING: &str = "countersign_requests_pending";

/// Waits until the sums over these nodes are as wanted, and stay so for a while.
async fn expect_sums(nodes: &[SocketAddr], wanted: &[(String, f64)]) {
    let sums = async || {
        let mut sums = vec![0.0; wanted.len()];
        for node in nodes {
            let answer = get(*node, "/metrics").await.unwrap().expect(200);
            let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
            for (sum, (name, _)) in sums.iter_mut().zip(wanted) {
                *sum += sample(&text, name).unwrap();
            }
        }
        sums
    };
    let are_so = |sums: &[f64]| sums.iter().zip(wanted).all(|(sum, (_, wanted))| (sum - wanted).abs() < 0.5);
    let until = Instant::now() + PATIENCE;
    loop {
        let found = sums().await;
        if are_so(&found) {
            break;
        }
        assert!(Instant::now() < until, "{found:?} instead of {wanted:?}");
        sleep(Duration::from_millis(50)).await;
    }
    sleep(Duration::from_secs(1)).await;
    let found = sums().await;
    assert!(are_so(&found), "counted again: {found:?} instead of {wanted:?}");
}

/// Sends each twice, the second as a client that has not heard the answer.
async fn twice(client: &Client, path: &str, body: serde_json::Value, first: u16, again: u16) {
    client.post(path, body.to_string()).await.expect(first);
    client.post(path, body.to_string()).await.expect(again);
}

async fn each_request_counts_once_however_it_ends(on: On) {
    let watched = Watched::start(on, "").await;
    let nodes = watched.nodes(if on == On::Cluster { 3 } else { 1 }).await;
    let (enforcer, approver) = (watched.client("enforcer"), watched.client("approver"));
    let operator = watched.client("operator");
    for id in ["approved", "rejected", "expired", "withdrawn", "cancelled", "pending"] {
        let mut request = submission(id, "robot", "ada");
        if id == "expired" {
            request["body"]["expiresAt"] = soon(3_000).into();
        }
        twice(&enforcer, "/v1/artifacts", request, 202, 202).await;
    }
    twice(&approver, "/v1/decisions", approval("approved", "ada"), 200, 200).await;
    let rejection = decision_about("rejected", &hash("rejected"), "reject", None);
    let rejection = envelope("decision.submit", "rejected", json!({ "approverId": "ada" }), rejection);
    twice(&approver, "/v1/decisions", rejection, 200, 200).await;
    let path = "/v1/exchanges/withdrawn/withdraw";
    twice(&enforcer, path, withdrawal("withdrawn", "robot"), 200, 409).await;
    twice(&operator, "/platform/v1/exchanges/cancelled/cancel", json!({}), 200, 200).await;
    let all = ["approved", "rejected", "expired", "withdrawn", "cancelled"];
    let wanted = all.map(|outcome| (ended(outcome), 1.0));
    let wanted: Vec<_> =
        [(SUBMITTED.to_owned(), 6.0), (DECIDED.to_owned(), 2.0)].into_iter().chain(wanted).collect();
    expect_sums(&nodes, &wanted).await;
    // Nobody has to add these up: each node shows all that is pending.
    for node in &nodes {
        expect_sums(std::slice::from_ref(node), &[(PENDING.to_owned(), 1.0)]).await;
        let text = String::from_utf8(get(*node, "/metrics").await.unwrap().bytes.to_vec()).unwrap();
        assert!(sample(&text, "countersign_oldest_request_seconds").unwrap() > 1.0, "{text}");
        assert!(text.contains("\ncountersign_build_info{version=\""), "{text}");
    }
    if on != On::Cluster {
        after_a_restart(watched, approver).await;
    }
}

/// What was counted before is not counted again, what is pending still is.
async fn after_a_restart(mut watched: Watched, approver: Client) {
    watched.gateway.kill();
    watched.gateway.start_again();
    watched.started_again().await;
    approver.post("/v1/decisions", approval("approved", "ada").to_string()).await.expect(200);
    watched.expect(&[(PENDING, 1.0), (SUBMITTED, 0.0), (&ended("approved"), 0.0), (DECIDED, 0.0)]).await;
    twice(&approver, "/v1/decisions", approval("pending", "ada"), 200, 200).await;
    let text = watched.expect(&[(PENDING, 0.0), (&ended("approved"), 1.0), (DECIDED, 1.0)]).await;
    // It was submitted before the restart, seconds ago.
    assert_eq!(sample(&text, "countersign_decision_seconds_bucket{le=\"2.0\"}"), Some(0.0), "{text}");
    assert_eq!(sample(&text, "countersign_decision_seconds_bucket{le=\"300.0\"}"), Some(1.0), "{text}");
    assert_eq!(sample(&text, "countersign_oldest_request_seconds"), Some(0.0), "{text}");
}

#[tokio::test]
async fn each_request_counts_once_on_sqlite_also_across_a_restart() {
    each_request_counts_once_however_it_ends(On::Sqlite).await;
}

#[tokio::test]
async fn each_request_counts_once_on_postgres_also_across_a_restart() {
    each_request_counts_once_however_it_ends(On::Postgres).await;
}

#[tokio::test]
async fn each_request_counts_once_on_three_nodes() {
    each_request_counts_once_however_it_ends(On::Cluster).await;
}

#[tokio::test]
async fn open_connections_are_counted_beside_their_limit() {
    let watched = Watched::start(On::Sqlite, "").await;
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(TcpStream::connect(watched.gateway.address).await.unwrap());
    }
    let text = watched.expect(&[("countersign_connections", 5.0)]).await;
    assert!(sample(&text, "countersign_connections_limit").unwrap() >= 500.0, "{text}");
    assert!(sample(&text, "countersign_clock_ahead_seconds").unwrap().abs() < 1.0, "{text}");
    drop(held);
    watched.expect(&[("countersign_connections", 0.0)]).await;
}

#[tokio::test]
async fn a_held_wait_delivers_and_is_counted_when_it_ends() {
    let watched = Watched::start(On::Sqlite, "").await;
    let (enforcer, approver) = (watched.client("enforcer"), watched.client("approver"));
    enforcer.post("/v1/artifacts", submission("one", "robot", "ada").to_string()).await.expect(202);
    let waiting = tokio::spawn(async move { enforcer.get("/v1/exchanges/one/wait?timeout=20").await });
    watched.expect(&[("countersign_held_connections{transport=\"wait\"}", 1.0)]).await;
    approver.post("/v1/decisions", approval("one", "ada").to_string()).await.expect(200);
    waiting.await.unwrap().expect(200);
    watched
        .expect(&[
            (&step("deliver"), 1.0),
            ("countersign_held_connections{transport=\"wait\"}", 0.0),
            ("countersign_http_requests_total{route=\"/v1/exchanges/{requestId}/wait\",status=\"200\"}", 1.0),
        ])
        .await;
}

#[tokio::test]
async fn clients_find_no_metrics_and_scrapers_nothing_else() {
    let watched = Watched::start(On::Sqlite, "").await;
    assert_eq!(get(watched.gateway.address, "/metrics").await.unwrap().status, 404);
    for path in ["/", "/healthz", "/v1/status", "/metrics/x"] {
        assert_eq!(get(watched.scrapers, path).await.unwrap().status, 404, "{path}");
    }
}

/// How many sockets of a process listen.
fn listeners(pid: u32) -> usize {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let sockets: BTreeSet<String> = files
        .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[3] == "0A" && sockets.contains(row[9])).count()
}

#[tokio::test]
async fn without_configuration_nothing_listens_for_scrapers() {
    assert_eq!(listeners(Gateway::start(On::Sqlite).pid()), 1);
    let watched = Watched::start(On::Sqlite, "").await;
    assert_eq!(listeners(watched.gateway.pid()), 2);
}

#[tokio::test]
async fn what_is_rejected_is_counted_by_its_reason() {
    let watched = Watched::start(On::Sqlite, "[rates]\ncredential = { per_second = 1, burst = 3 }\n").await;
    let client = watched.client("enforcer");
    let mut rejected = 0.0;
    // Many more than the burst: a slow machine gets one more for each second.
    for _ in 0..30 {
        rejected += f64::from(u8::from(client.get("/v1/exchanges/x").await.status == 429));
    }
    assert!(rejected >= 2.0);
    watched.expect(&[("countersign_rejected_total{reason=\"credential_rate\"}", rejected)]).await;
}

/// Sends many requests at once on one connection; returns how many were answered with 404.
async fn pipelined(address: SocketAddr, key: &str, paths: impl Iterator<Item = String>) -> usize {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let write = async {
        for path in paths {
            let request = format!("GET {path} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\n\r\n");
            writing.write_all(request.as_bytes()).await.unwrap();
        }
        writing.write_all(b"GET /healthz HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n").await.unwrap();
    };
    let mut answers = Vec::new();
    let read = async { reading.read_to_end(&mut answers).await.unwrap() };
    tokio::join!(write, read);
    String::from_utf8(answers).unwrap().matches("HTTP/1.1 404").count()
}

const NO_RATES: &str =
    "[rates]\ncredential = { per_second = 0, burst = 0 }\ntenant = { per_second = 0, burst = 0 }\n";

#[tokio::test]
async fn ten_thousand_ids_make_no_new_series() {
    let watched = Watched::start(On::Sqlite, NO_RATES).await;
    let key = watched.gateway.key("acme", "enforcer", None);
    let path = |number: usize| match number % 2 {
        0 => format!("/v1/exchanges/some-id-{number}"),
        _ => format!("/some-path-{number}/x"),
    };
    assert_eq!(pipelined(watched.gateway.address, &key, (0..2).map(path)).await, 2);
    let before = series(&watched.scrape().await);
    assert_eq!(pipelined(watched.gateway.address, &key, (0..10_000).map(path)).await, 10_000);
    let text = watched
        .expect(&[
            ("countersign_http_requests_total{route=\"/v1/exchanges/{requestId}\",status=\"404\"}", 5_001.0),
            ("countersign_http_requests_total{route=\"unknown\",status=\"404\"}", 5_001.0),
        ])
        .await;
    assert_eq!(series(&text), before);
    assert!(!text.contains("some-") && !text.contains("acme"), "{text}");
}

#[tokio::test]
async fn hostile_scrapers_take_eight_connections_and_little_memory() {
    let watched = Watched::start(On::Sqlite, "").await;
    let client = watched.client("enforcer");
    let before = resident_kib(watched.gateway.pid());
    let requests = "GET /metrics HTTP/1.1\r\nhost: g\r\n\r\n".repeat(2_000);
    let mut hostile = Vec::new();
    for _ in 0..40 {
        let mut stream = TcpStream::connect(watched.scrapers).await.unwrap();
        // None of them reads an answer; those beyond the eighth are closed before they have written all.
        drop(timeout(Duration::from_millis(200), stream.write_all(requests.as_bytes())).await);
        hostile.push(stream);
    }
    client.get("/v1/exchanges/x").await.expect(404);
    let more = resident_kib(watched.gateway.pid()).saturating_sub(before);
    assert!(more < 16 << 10, "{more} KiB");
    drop(hostile);
    // That they are gone is noticed a moment later.
    let is_served = async || get(watched.scrapers, "/metrics").await.is_ok_and(|answer| answer.status == 200);
    until("a scraper is served", 20, is_served).await;
    let text = watched.expect(&[("countersign_held_connections{transport=\"sse\"}", 0.0)]).await;
    assert!(sample(&text, "countersign_rejected_total{reason=\"scrapers\"}").unwrap() >= 30.0, "{text}");
}
