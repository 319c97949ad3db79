//! Connections: what is a request, when one ends, and how many a tenant may hold.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};

use crate::{
    all_of, client, submit,
    support::{
        client::{ask_for_stream, exchange},
        messages::submission,
        process::{Gateway, On},
        sse::Stream,
    },
};

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
