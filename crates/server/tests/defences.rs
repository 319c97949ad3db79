//! What one client can't do to the others: take their connections, their memory, their answers, or stay when it is
//! unwanted.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use futures_util::{SinkExt as _, future::join_all};
use serde_json::json;
use support::{
    client::{Client, ask_for_stream, exchange},
    messages::{soon, submission},
    process::{Gateway, On, Second, program, resident_kib},
    sse::Stream,
    ws::Socket,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::frame::{
        Frame,
        coding::{Data, OpCode},
    },
};

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

#[tokio::test(flavor = "multi_thread")]
async fn the_body_of_a_wait_is_never_taken_for_another_request() {
    let gateway = Gateway::start(On::Sqlite);
    let enforcer = client(&gateway, "acme", "enforcer");
    submit(&enforcer, "r").await;
    let key = enforcer.key.clone().unwrap();
    let hidden = format!("GET /v1/status HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\n\r\n");
    // Large enough that a part of it is still in the socket when the wait begins.
    let body = "\r\n".repeat(20_000) + &hidden;
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (framing, body) in [
        (format!("content-length: {}", body.len()), body),
        ("transfer-encoding: chunked".to_owned(), chunked),
    ] {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        let head = format!(
            "GET /v1/exchanges/r/wait?timeout=1 HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\n{framing}\r\n\r\n"
        );
        stream.write_all((head + &body).as_bytes()).await.unwrap();
        let (answers, _) = all_of(&mut stream, Duration::from_secs(3)).await;
        let statuses: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
        assert_eq!(statuses, ["400"], "{answers}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_asks_for_the_end_of_its_connection_gets_it() {
    let gateway = Gateway::start(On::Sqlite);
    let enforcer = client(&gateway, "acme", "enforcer");
    submit(&enforcer, "r").await;
    let key = enforcer.key.clone().unwrap();
    for head in ["HTTP/1.1\r\nhost: g\r\nconnection: close", "HTTP/1.0\r\nhost: g"] {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        let request = format!(
            "GET /v1/exchanges/r/wait?timeout=0 {head}\r\nauthorization: Bearer {key}\r\n\r\n\
             GET /healthz HTTP/1.1\r\nhost: g\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let (answers, ended) = all_of(&mut stream, Duration::from_secs(5)).await;
        assert!(ended && answers.contains("connection: close"), "{answers}");
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_of_more_than_sixteen_kilobytes_is_refused() {
    let gateway = Gateway::start(On::Sqlite);
    let statuses = [8_000, 17_000, 60_000].map(async |size: usize| {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        let request = format!(
            "GET /healthz HTTP/1.1\r\nhost: g\r\nconnection: close\r\nx: {}\r\n\r\n",
            "x".repeat(size)
        );
        drop(stream.write_all(request.as_bytes()).await);
        all_of(&mut stream, Duration::from_secs(5)).await.0.get(9..12).unwrap_or("cut").to_owned()
    });
    let [fits, large, huge] = <[String; 3]>::try_from(join_all(statuses).await).unwrap();
    assert_eq!(fits, "200");
    assert!(
        ["431", "cut"].contains(&large.as_str()) && ["431", "cut"].contains(&huge.as_str()),
        "{large} {huge}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_nothing_is_let_go_after_half_a_minute() {
    let gateway = Gateway::start(On::Sqlite);
    let started = Instant::now();
    let mut silent = TcpStream::connect(gateway.address).await.unwrap();
    let mut halting = TcpStream::connect(gateway.address).await.unwrap();
    halting.write_all(b"GET /healthz HTTP/1.1\r\nhost:").await.unwrap();
    for stream in [&mut silent, &mut halting] {
        let (_, ended) = all_of(stream, Duration::from_secs(40)).await;
        assert!(ended && started.elapsed() > Duration::from_secs(25), "after {:?}", started.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_announced_and_never_come_take_nobodys_room() {
    let gateway = Gateway::start(On::Sqlite);
    let enforcer = client(&gateway, "acme", "enforcer");
    let key = enforcer.key.clone().unwrap();
    let started = Instant::now();
    let mut announced = Vec::new();
    for _ in 0..60 {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        let head = format!(
            "POST /v1/session/event HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: 7000000\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        announced.push(stream);
    }
    sleep(Duration::from_millis(300)).await;
    submit(&enforcer, "r").await;
    let (answer, _) = all_of(&mut announced[0], Duration::from_secs(30)).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(started.elapsed() < Duration::from_secs(25), "a piece that takes longer than 15 s is too slow");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_cost_a_bounded_amount() {
    let gateway = Gateway::start(On::Sqlite);
    let enforcer = client(&gateway, "acme", "enforcer");
    for snapshot_type in ["summary", "plan", "diff_summary", "context"] {
        let event = json!({
            "eventType": "session.snapshot", "sessionId": "s", "snapshotId": snapshot_type,
            "snapshotType": snapshot_type, "createdAt": "2026-11-15T12:00:00Z",
            "payload": { "ciphertext": "x".repeat(6_900_000) },
            "snapshotHashAlg": "SHA-256", "snapshotHash": "b".repeat(64),
        });
        enforcer.post("/v1/session/event", event.to_string()).await.expect(202);
    }
    enforcer.get("/v1/session/s").await.expect(200);
    let before = resident_kib(gateway.pid());
    let key = enforcer.key.clone().unwrap();
    let mut unread = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        let head = format!("GET /v1/session/s HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        unread.push(stream);
    }
    let mut peak = 0;
    for _ in 0..60 {
        sleep(Duration::from_millis(50)).await;
        peak = peak.max(resident_kib(gateway.pid()));
    }
    let more = peak.saturating_sub(before) / 1_024;
    println!("100 unread answers of 28 MB: {more} MB more");
    assert!(more < 256, "{more} MB");
    // Others are not locked out, whatever is unread.
    client(&gateway, "quiet", "enforcer").get("/v1/status").await.expect(200);
}

/// A snapshot of a session that costs as much of the processor as its size allows: many tiny members.
fn costly_snapshot() -> String {
    let members = vec![r#"{"":0}"#; 5_200_000 / 7].join(",");
    format!(
        r#"{{"eventType":"session.snapshot","sessionId":"d","snapshotId":"x","snapshotType":"plan","createdAt":"2026-11-15T12:00:00Z","payload":{{"a":[{members}]}},"snapshotHashAlg":"SHA-256","snapshotHash":"{}"}}"#,
        "b".repeat(64)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_hold_up_nobody() {
    let gateway = Gateway::start(On::Sqlite);
    let [loud, quiet] = ["loud", "quiet"].map(|tenant| client(&gateway, tenant, "enforcer"));
    let body = costly_snapshot();
    let mut sockets = Vec::new();
    for number in 0..4 {
        sockets.push(Socket::open(&loud, "enforcer", &format!("robot-{number}")).await);
    }
    let over_rest = join_all((0..30).map(|_| loud.post("/v1/session/event", &body)));
    let frame = format!(
        r#"{{"msgType":"session.snapshot","requestId":"d","createdAt":"2026-11-15T12:00:00Z","sender":{{}},"body":{body}}}"#
    );
    let over_sockets = join_all(sockets.iter_mut().map(async |socket| {
        socket.0.send(Message::text(frame.clone())).await.unwrap();
        socket.next().await.unwrap()
    }));
    let mut loud_ended = Box::pin(async { tokio::join!(over_rest, over_sockets) });
    let mut times = Vec::new();
    let mut asking = Box::pin(async {
        sleep(Duration::from_millis(500)).await;
        loop {
            let asked = Instant::now();
            quiet.get("/v1/status").await.expect(200);
            times.push(asked.elapsed());
            sleep(Duration::from_millis(20)).await;
        }
    });
    let (answers, frames) = tokio::select! {
        ended = &mut loud_ended => ended,
        () = &mut asking => unreachable!(),
    };
    drop(asking);
    for answer in answers {
        answer.refuse(422, "PROTO_ERR_HASH_MISMATCH");
    }
    assert!(frames.iter().all(|frame| frame["body"]["code"] == "PROTO_ERR_HASH_MISMATCH"), "{frames:?}");
    times.sort_unstable();
    let (count, median, slowest) = (times.len(), times[times.len() / 2], times[times.len() - 1]);
    println!("beside 34 large bodies: {count} requests, median {median:?}, slowest {slowest:?}");
    assert!(count >= 20 && median < Duration::from_millis(100), "{count} requests, median {median:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_never_finished_take_a_share_and_no_more() {
    let gateway = Gateway::start(On::Sqlite);
    let [loud, quiet] = ["loud", "quiet"].map(|tenant| client(&gateway, tenant, "enforcer"));
    let piece = "x".repeat(1 << 20);
    // Six megabytes on each of forty: more than a tenant's three quarters of 256.
    let mut sockets = Vec::new();
    for number in 0..40 {
        let mut socket = Socket::open(&loud, "enforcer", &format!("robot-{number}")).await;
        for part in 0..6 {
            let code = OpCode::Data(if part == 0 { Data::Text } else { Data::Continue });
            let frame = Message::Frame(Frame::message(piece.clone(), code, false));
            drop(timeout(Duration::from_secs(10), socket.0.send(frame)).await);
        }
        sockets.push(socket);
    }
    let ended =
        join_all(sockets.iter_mut().map(|socket| timeout(Duration::from_secs(2), socket.next()))).await;
    let ended = ended.iter().filter(|ended| matches!(ended, Ok(Err(_)))).count();
    assert!((5..20).contains(&ended), "{ended} of forty were ended");
    // Somebody else's message of the same size goes through.
    let mut socket = Socket::open(&quiet, "enforcer", "robot").await;
    let answer = socket.ask(&submission("r", "robot", "ada")).await;
    assert_eq!(answer["msgType"], "artifact.accepted");
    submit(&quiet, "r2").await;
    // And when they go, there is room again.
    drop(sockets);
    let again = async {
        loop {
            let body = json!({ "sessionId": "s", "eventType": "x", "filler": "x".repeat(6 << 20) });
            let answer = loud.post("/v1/session/event", body.to_string()).await;
            if answer.status != 503 {
                return answer.status;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    assert_eq!(timeout(Duration::from_secs(10), again).await.unwrap(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_are_given_up_after_ten_seconds() {
    let gateway = Gateway::start(On::Sqlite);
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    // Many times what the system holds for a connection.
    let request = "GET /openapi.json HTTP/1.1\r\nhost: g\r\n\r\n".repeat(300);
    stream.write_all(request.as_bytes()).await.unwrap();
    let before = Instant::now();
    let gone = async {
        // The other end is gone when writing to it fails.
        while stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: g\r\n\r\n").await.is_ok() {
            sleep(Duration::from_millis(200)).await;
        }
    };
    assert!(timeout(Duration::from_secs(20), gone).await.is_ok(), "the connection is held for ever");
    assert!(before.elapsed() > Duration::from_secs(8));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_holds_too_many_connections_is_429_and_others_get_in() {
    let gateway = Gateway::start_with_files(600);
    let [loud, quiet] = ["loud", "quiet"].map(|tenant| client(&gateway, tenant, "approver"));
    let (mut held, mut refused) = (Vec::new(), 0);
    for number in 0..250 {
        let (key, path) = (loud.key.as_deref().unwrap(), format!("/v1/sse/approvers/a{number}"));
        match ask_for_stream(gateway.address, key, &path).await {
            (stream, 200) => held.push(stream),
            (_, 429) => refused += 1,
            (_, other) => unreachable!("{other}"),
        }
    }
    assert!(held.len() == 225 && refused == 25, "{} held, {refused} refused", held.len());
    drop(Stream::open(&quiet, "/v1/sse/approvers/ada", None).await);
    loud.get("/v1/approvers/ada/inbox").await.expect(200);
}

/// A socket, a stream and a wait, all of one key, end when the key is revoked, by whatever way.
async fn revoked(gateway: &Gateway, at: &Client, revoke: impl AsyncFnOnce(&str)) {
    let key = json!({ "role": "enforcer", "id": "robot" });
    ended(gateway, at, &key, revoke, Duration::from_secs(8)).await;
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
    let valid = Duration::from_secs(6);
    let key = json!({ "role": "enforcer", "id": "robot", "expiresAt": soon(6_000) });
    let since = Instant::now();
    ended(gateway, at, &key, async |_| sleep_until(since + valid).await, Duration::from_secs(5)).await;
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
        timeout(Duration::from_secs(30), open).await.expect("it is never closed");
        revoked.elapsed()
    });
    let mut times = join_all(closing).await;
    times.sort_unstable();
    println!("100 revocations while the store fails: closed after {:?} to {:?}", times[0], times[99]);
    assert!(times[99] < Duration::from_secs(15), "{times:?}");
    assert!(disturbance.wait().unwrap().success());
    second.stop();
}

/// Sends a request, then ends the sending side if asked to, and returns everything that comes for so long.
async fn raw(gateway: &Gateway, request: &str, half_close: bool, longest: Duration) -> String {
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    if half_close {
        stream.shutdown().await.unwrap();
    }
    all_of(&mut stream, longest).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_has_nothing_more_to_send_still_gets_its_answer() {
    let gateway = Gateway::start(On::Sqlite);
    let enforcer = client(&gateway, "acme", "enforcer");
    let head = format!("host: g\r\nauthorization: Bearer {}\r\n", enforcer.key.as_ref().unwrap());
    let longest = Duration::from_secs(5);
    let status = format!("GET /v1/status HTTP/1.1\r\n{head}\r\n");
    let answer = raw(&gateway, &status, true, longest).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    let body = submission("r", "robot", "ada").to_string();
    let length = body.len();
    let submit = format!("POST /v1/artifacts HTTP/1.1\r\n{head}content-length: {length}\r\n\r\n{body}");
    let answer = raw(&gateway, &submit, true, longest).await;
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer:?}");
    // A body that breaks off is none.
    let answer = raw(&gateway, &submit[..submit.len() - 1], true, longest).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_whose_clients_end_their_side_make_room_for_others() {
    let gateway = Gateway::start_with_files(600);
    let approver = client(&gateway, "acme", "approver");
    let key = approver.key.as_deref().unwrap();
    let stream =
        async |number| ask_for_stream(gateway.address, key, &format!("/v1/sse/approvers/a{number}")).await;
    // As many as one tenant may hold.
    let mut held = Vec::new();
    for number in 0..225 {
        let (stream, status) = stream(number).await;
        assert_eq!(status, 200);
        held.push(stream);
    }
    assert_eq!(stream(225).await.1, 429);
    for stream in &mut held {
        stream.shutdown().await.unwrap();
    }
    let again = async { while stream(225).await.1 != 200 {} };
    timeout(Duration::from_secs(10), again).await.expect("those who left still count");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_asked_for_only_after_its_sender_is_admitted() {
    let gateway = Gateway::start(On::Sqlite);
    let enforcer = client(&gateway, "acme", "enforcer");
    let key = enforcer.key.as_ref().unwrap();
    let begin = |path: &str, head: &str| {
        let body = submission("r", "robot", "ada").to_string();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: g\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n{head}\r\n"
        );
        (head, body)
    };
    let rejected = [
        ("/v1/artifacts", String::new(), "401"),
        ("/v1/artifacts", "authorization: Bearer csk_made_up\r\n".to_owned(), "401"),
        ("/v1/decisions", format!("authorization: Bearer {key}\r\n"), "403"),
        ("/nothing", format!("authorization: Bearer {key}\r\n"), "404"),
    ];
    for (path, head, status) in rejected {
        let (head, _) = begin(path, &head);
        let started = Instant::now();
        let answer = raw(&gateway, &head, false, Duration::from_secs(5)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path} {answer}");
        assert!(answer.contains("connection: close"), "{path} {answer}");
        assert!(started.elapsed() < Duration::from_secs(4), "{path} is kept open");
    }
    let (head, body) =
        begin("/v1/artifacts", &format!("authorization: Bearer {key}\r\nconnection: close\r\n"));
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.unwrap();
    let (answer, _) = all_of(&mut stream, Duration::from_secs(5)).await;
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_its_host_once() {
    let gateway = Gateway::start(On::Sqlite);
    for (head, status) in [
        ("HTTP/1.1\r\n", "400"),
        ("HTTP/1.1\r\nhost: g\r\nhost: h\r\n", "400"),
        ("HTTP/1.1\r\nhost: g\r\nconnection: close\r\n", "200"),
        ("HTTP/1.0\r\n", "200"),
    ] {
        let request = format!("GET /healthz {head}\r\n");
        let answer = raw(&gateway, &request, false, Duration::from_secs(5)).await;
        assert!(answer.get(9..12) == Some(status), "{head:?} {answer}");
        assert!(status == "200" || answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_is_still_there_after_nonsense() {
    let gateway = Gateway::start(On::Sqlite);
    for text in
        ["nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "POST /v1/acks HTTP/1.1\r\ncontent-length: x\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(gateway.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let (answer, ended) = all_of(&mut stream, Duration::from_secs(5)).await;
        assert!(ended && (answer.is_empty() || answer.starts_with("HTTP/1.1 4")), "{answer}");
    }
    let alive = hyper::Request::get("/healthz").header("host", "g");
    let alive = alive.body(http_body_util::Full::default()).unwrap();
    assert_eq!(exchange(gateway.address, alive).await.unwrap().status, 200);
}
