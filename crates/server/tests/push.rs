//! Nothing that is pushed gets lost: connections are cut, readers stall, the gateway stops, files run out.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

mod support;

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde_json::{Value, json};
use support::{
    client::{Client, ask_for_stream},
    messages::{approval, envelope, submission},
    process::{Gateway, On, resident_kib},
    sse::Stream,
    ws::Socket,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout, timeout_at},
};

/// Cut connections in CI; more by hand with `COUNTERSIGN_CUTS`.
fn cuts() -> usize {
    std::env::var("COUNTERSIGN_CUTS").map_or(50, |cuts| cuts.parse().unwrap())
}

struct World {
    gateway: Gateway,
    enforcer: Client,
    approver: Client,
}

impl World {
    fn start(on: On) -> Self {
        let gateway = Gateway::start(on);
        let enforcer = Client::new(gateway.address, &gateway.key("acme", "enforcer", None));
        let approver = Client::new(gateway.address, &gateway.key("acme", "approver", None));
        Self { gateway, enforcer, approver }
    }

    async fn submit(&self, id: &str) {
        self.enforcer.post("/v1/artifacts", submission(id, "robot", "ada").to_string()).await.expect(202);
    }

    async fn approve(&self, id: &str) {
        self.approver.post("/v1/decisions", approval(id, "ada").to_string()).await.expect(200);
    }
}

/// Chance that is the same on every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A relay that cuts the connection after so many bytes from the gateway: in the middle of an event, a line, anywhere.
async fn cutting_relay(to: std::net::SocketAddr, after: u64) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let Ok((mut near, _)) = listener.accept().await else { return };
        let mut far = TcpStream::connect(to).await.unwrap();
        let (mut near_read, mut near_write) = near.split();
        let (mut far_read, mut far_write) = far.split();
        let forward = tokio::io::copy(&mut near_read, &mut far_write);
        let back = async {
            let mut limited = (&mut far_read).take(after);
            drop(tokio::io::copy(&mut limited, &mut near_write).await);
        };
        tokio::select! {
            _ = forward => {}
            () = back => {}
        }
    });
    address
}

const EVENTS: usize = 200;

async fn cut_streams(on: On) {
    let world = World::start(on);
    let ids: Vec<String> = (0..EVENTS).map(|number| format!("event-{number:03}")).collect();
    let mut dice = Dice(7);
    let (mut seen, mut last, mut cut): (Vec<String>, Option<String>, usize) = (Vec::new(), None, 0);
    let sending = {
        let (enforcer, ids) = (world.enforcer.clone(), ids.clone());
        tokio::spawn(async move {
            for id in &ids {
                enforcer.post("/v1/artifacts", submission(id, "robot", "ada").to_string()).await.expect(202);
            }
        })
    };
    let mut rounds = 0;
    while cut < cuts() {
        rounds += 1;
        // Each event is about 600 bytes: some connections see none, some several.
        let relay = cutting_relay(world.gateway.address, 250 + dice.below(4_000)).await;
        let client = Client { address: relay, ..world.approver.clone() };
        let request = Stream::try_open(&client, "/v1/sse/approvers/ada", last.as_deref()).await;
        let Some(mut stream) = request else {
            cut += 1;
            continue;
        };
        let mut last_event_at = Instant::now();
        loop {
            // Before the last event the next one may be late; after it nothing must come. Pings do not count.
            let patience = Duration::from_secs(if seen.len() < EVENTS { 30 } else { 2 });
            match timeout_at(last_event_at + patience, stream.next()).await {
                Ok(Some(event)) if event.name == "approval.request" => {
                    seen.push(event.envelope()["requestId"].as_str().unwrap().to_owned());
                    last = Some(event.id);
                    last_event_at = Instant::now();
                }
                Ok(Some(_)) => {}
                Ok(None) => {
                    cut += 1;
                    break;
                }
                // Everything has come: begin again from the start, for the rest of the cuts.
                Err(_) => {
                    assert_eq!(seen, ids, "every event, in order, once");
                    seen.clear();
                    last = None;
                    break;
                }
            }
        }
    }
    sending.await.unwrap();
    let mut stream = Stream::open(&world.approver, "/v1/sse/approvers/ada", last.as_deref()).await;
    while seen.len() < EVENTS {
        let event = stream.event().await;
        seen.push(event.envelope()["requestId"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, ids, "every event, in order, once");
    println!("{cut} cuts over {rounds} connections: all {EVENTS} events, in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_anywhere_goes_on_where_it_was_on_sqlite() {
    cut_streams(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_anywhere_goes_on_where_it_was_on_postgres() {
    cut_streams(On::Postgres).await;
}

async fn all_delivered(world: &World, ids: &[String]) -> bool {
    for id in ids {
        let status = world.enforcer.get(&format!("/v1/exchanges/{id}")).await.expect(200).body();
        if status["state"] != "delivered" {
            return false;
        }
    }
    true
}

async fn cut_sockets(on: On) {
    let world = World::start(on);
    let ids: Vec<String> = (0..EVENTS).map(|number| format!("event-{number:03}")).collect();
    let mut dice = Dice(11);
    let deciding = {
        let (enforcer, approver, ids) = (world.enforcer.clone(), world.approver.clone(), ids.clone());
        tokio::spawn(async move {
            for id in &ids {
                enforcer.post("/v1/artifacts", submission(id, "robot", "ada").to_string()).await.expect(202);
                approver.post("/v1/decisions", approval(id, "ada").to_string()).await.expect(200);
            }
        })
    };
    // In the order in which each was first seen, and what is known to have been acknowledged.
    let (mut seen, mut acknowledged): (Vec<String>, std::collections::BTreeSet<String>) = Default::default();
    let mut cut = 0;
    while cut < cuts() || !(seen.len() == EVENTS && all_delivered(&world, &ids).await) {
        let relay = cutting_relay(world.gateway.address, 200 + dice.below(6_000)).await;
        let client = Client { address: relay, ..world.enforcer.clone() };
        let Some(mut socket) = Socket::try_open(&client, "enforcer", "robot").await else {
            cut += 1;
            continue;
        };
        let mut newest_on_this = None;
        while let Ok(Ok(message)) = timeout(Duration::from_millis(150), socket.next()).await {
            let id = message["requestId"].as_str().unwrap().to_owned();
            match message["msgType"].as_str().unwrap() {
                "decision.deliver" => {
                    assert!(!acknowledged.contains(&id), "{id} was acknowledged and is told again");
                    assert!(newest_on_this.as_ref() < Some(&id), "{id} is out of order on its connection");
                    newest_on_this = Some(id.clone());
                    if !seen.contains(&id) {
                        seen.push(id.clone());
                    }
                    let ack = envelope("ack.submit", &id, json!({}), json!({ "msgId": message["msgId"] }));
                    if socket.try_send(&ack).await.is_err() {
                        break;
                    }
                }
                "ack.accepted" => drop(acknowledged.insert(id)),
                other => unreachable!("{other}"),
            }
        }
        cut += 1;
    }
    deciding.await.unwrap();
    assert_eq!(seen, ids, "every decision, in order");
    println!("{cut} connections cut: all {EVENTS} decisions delivered, in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_is_cut_anywhere_loses_no_decision_on_sqlite() {
    cut_sockets(On::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_is_cut_anywhere_loses_no_decision_on_postgres() {
    cut_sockets(On::Postgres).await;
}

/// A connection that asks for a stream and never reads from it. Its own buffer is made small, so that it is full soon.
async fn stalled(world: &World, path: &str, headers: &str) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(2_048).unwrap();
    let mut stream = socket.connect(world.gateway.address).await.unwrap();
    let key = world.approver.key.as_deref().unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_stalled_readers_cost_little_and_hold_up_nobody() {
    let world = World::start(On::Sqlite);
    // 40 requests of 50 KB, addressed to nobody, so that every approver is to be told of all of them.
    for number in 0..40 {
        let mut request = submission(&format!("large-{number}"), "robot", "x");
        request.as_object_mut().unwrap().remove("recipient");
        request["body"]["ciphertext"] = "x".repeat(50 << 10).into();
        world.enforcer.post("/v1/artifacts", request.to_string()).await.expect(202);
    }
    let before = resident_kib(world.gateway.pid());
    let mut readers = Vec::new();
    for number in 0..1_000 {
        readers.push(stalled(&world, &format!("/v1/sse/approvers/stalled-{number}"), "").await);
    }
    // A healthy client beside them, all of whose requests complete.
    let mut socket = Socket::open(&world.enforcer, "enforcer", "robot").await;
    let mut slowest = Duration::ZERO;
    for number in 0..50 {
        let id = format!("healthy-{number}");
        let started = Instant::now();
        world.submit(&id).await;
        world.approve(&id).await;
        let message = socket.message().await;
        assert_eq!(message["requestId"], *id);
        let ack = envelope("ack.submit", &id, json!({}), json!({ "msgId": message["msgId"] }));
        socket.ask(&ack).await;
        slowest = slowest.max(started.elapsed());
    }
    let grown = resident_kib(world.gateway.pid()).saturating_sub(before);
    println!("1,000 stalled readers: {grown} KiB more, slowest healthy exchange {slowest:?}");
    // Each holds at most the one message that it does not take, and its task.
    assert!(grown < 100 << 10, "{grown} KiB");
    drop(readers);
}

/// The time from submission to acknowledgement of `count` exchanges, one after the other: their 99th percentile.
async fn p99(world: &World, socket: &mut Socket, name: &str, count: usize) -> Duration {
    let mut times = Vec::with_capacity(count);
    for number in 0..count {
        let id = format!("{name}-{number}");
        let started = Instant::now();
        world.submit(&id).await;
        world.approve(&id).await;
        let message = socket.message().await;
        let ack = envelope("ack.submit", &id, json!({}), json!({ "msgId": message["msgId"] }));
        socket.ask(&ack).await;
        times.push(started.elapsed());
    }
    times.sort();
    times[count * 99 / 100]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a ratio of times: by hand, .ci/long stalled"]
async fn a_healthy_client_beside_a_thousand_stalled_readers_is_at_most_twice_as_slow() {
    let mut ratios = Vec::new();
    for round in 0..5 {
        let world = World::start(On::Sqlite);
        let mut socket = Socket::open(&world.enforcer, "enforcer", "robot").await;
        p99(&world, &mut socket, "warm", 100).await;
        let alone = p99(&world, &mut socket, "alone", 500).await;
        for number in 0..40 {
            let mut request = submission(&format!("large-{number}"), "robot", "x");
            request.as_object_mut().unwrap().remove("recipient");
            request["body"]["ciphertext"] = "x".repeat(50 << 10).into();
            world.enforcer.post("/v1/artifacts", request.to_string()).await.expect(202);
        }
        let mut readers = Vec::new();
        for number in 0..1_000 {
            readers.push(stalled(&world, &format!("/v1/sse/approvers/stalled-{number}"), "").await);
        }
        sleep(Duration::from_secs(1)).await;
        let beside = p99(&world, &mut socket, "beside", 500).await;
        let ratio = beside.as_secs_f64() / alone.as_secs_f64();
        println!(
            "round {round}: p99 alone {alone:?}, beside 1,000 stalled readers {beside:?}, ratio {ratio:.2}"
        );
        ratios.push(ratio);
        drop(readers);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.2}", ratios[2]);
    assert!(ratios[2] <= 2.0, "{ratios:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_takes_nothing_is_let_go_after_ten_seconds() {
    let world = World::start(On::Sqlite);
    for number in 0..100 {
        let mut request = submission(&format!("large-{number}"), "robot", "ada");
        request["body"]["ciphertext"] = "x".repeat(100 << 10).into();
        world.enforcer.post("/v1/artifacts", request.to_string()).await.expect(202);
    }
    // A stream, and a WebSocket: an upgrade is a request with some more headers.
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut readers = [
        stalled(&world, "/v1/sse/approvers/ada", "").await,
        stalled(&world, "/v1/ws?role=approver&id=ada", upgrade).await,
    ];
    // Twice the time: a reader that takes something again before it is let go would be kept.
    sleep(Duration::from_secs(20)).await;
    for reader in &mut readers {
        // The gateway has closed: what its system had taken comes, and then the end.
        let mut bytes = Vec::new();
        let ended = timeout(Duration::from_secs(20), reader.read_to_end(&mut bytes)).await;
        assert!(ended.is_ok(), "the connection is still open");
        assert!((100..100 * (100 << 10)).contains(&bytes.len()), "{}", bytes.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_are_told_to_come_back_when_the_gateway_stops_and_nothing_is_lost() {
    let mut world = World::start(On::Sqlite);
    let mut socket = Socket::open(&world.enforcer, "enforcer", "robot").await;
    let mut stream = Stream::open(&world.approver, "/v1/sse/approvers/ada", None).await;
    world.submit("before").await;
    assert_eq!(stream.event().await.envelope()["requestId"], "before");
    world.approve("before").await;
    assert_eq!(socket.message().await["requestId"], "before");
    let stopped_at = Instant::now();
    world.gateway.terminate();
    assert_eq!(socket.closed().await, Some(1012));
    while stream.next().await.is_some() {}
    assert_eq!(stream.retries.len(), 2, "told when to come back: {:?}", stream.retries);
    assert!(tokio::task::block_in_place(|| world.gateway.ended()));
    assert!(stopped_at.elapsed() < Duration::from_secs(30), "{:?}", stopped_at.elapsed());
    world.gateway.expect_drained().await;
    tokio::task::block_in_place(|| world.gateway.start_again());
    let mut socket = Socket::open(&world.enforcer, "enforcer", "robot").await;
    assert_eq!(socket.message().await["requestId"], "before", "not acknowledged, so told again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_stream_is_pinged_every_fifteen_seconds() {
    let world = World::start(On::Sqlite);
    let started = Instant::now();
    let mut stream = Stream::open(&world.approver, "/v1/sse/approvers/ada", None).await;
    let ping = timeout(Duration::from_secs(45), stream.next()).await.unwrap().unwrap();
    assert_eq!((ping.name.as_str(), ping.data.as_str(), ping.id.as_str()), ("ping", "", ""));
    assert!((14..40).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_files_new_connections_get_503_and_nothing_else_suffers() {
    let gateway = Gateway::start_with_files(600);
    let enforcer = Client::new(gateway.address, &gateway.key("acme", "enforcer", None));
    let approver = Client::new(gateway.address, &gateway.key("acme", "approver", None));
    let world = World { gateway, enforcer, approver };
    let mut socket = Socket::open(&world.enforcer, "enforcer", "robot").await;
    // Of two tenants: one alone does not get so far.
    let keys = ["acme", "other"].map(|tenant| world.gateway.key(tenant, "approver", None));
    let mut held = Vec::new();
    let mut turned_away = 0;
    for number in 0..500 {
        let path = format!("/v1/sse/approvers/a{number}");
        match ask_for_stream(world.gateway.address, &keys[number % 2], &path).await {
            (stream, 200) => held.push(stream),
            (_, 503) => turned_away += 1,
            (_, other) => unreachable!("{other}"),
        }
    }
    assert!(held.len() > 200 && turned_away > 50, "{} held, {turned_away} turned away", held.len());
    // Those who are in are served: submit, over the connection that is open.
    let answer = socket.ask(&submission("full", "robot", "ada")).await;
    assert_eq!(answer["msgType"], "artifact.accepted");
    // And there is room again when somebody goes.
    held.truncate(held.len() - 20);
    let again = timeout(Duration::from_secs(30), async {
        loop {
            let request = hyper::Request::get("/healthz").header("host", "g");
            let request = request.body(http_body_util::Full::default()).unwrap();
            match support::client::exchange(world.gateway.address, request).await {
                Ok(answer) if answer.status == 200 => return,
                _ => sleep(Duration::from_millis(20)).await,
            }
        }
    });
    assert!(again.await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_channels_at_once_are_all_served() {
    let world = Arc::new(World::start(On::Sqlite));
    let sockets = join_all((0..300).map(|number| {
        let enforcer = world.enforcer.clone();
        async move { (number, Socket::open(&enforcer, "enforcer", &format!("robot-{number}")).await) }
    }))
    .await;
    let readers: Vec<_> = sockets
        .into_iter()
        .map(|(number, mut socket)| {
            tokio::spawn(async move {
                let message: Value = timeout(Duration::from_mins(1), socket.next()).await.unwrap().unwrap();
                assert_eq!(message["requestId"], format!("r-{number}"));
            })
        })
        .collect();
    for some in (0..300).collect::<Vec<_>>().chunks(30) {
        join_all(some.iter().map(async |number| {
            let id = format!("r-{number}");
            let request = submission(&id, &format!("robot-{number}"), "ada").to_string();
            world.enforcer.post("/v1/artifacts", request).await.expect(202);
            world.approve(&id).await;
        }))
        .await;
    }
    for reader in readers {
        reader.await.unwrap();
    }
}
