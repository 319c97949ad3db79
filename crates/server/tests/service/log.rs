//! A log that nobody reads.

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, ChildStderr, Stdio},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::support::{
    client::exchange,
    process::{program, signal},
};

/// A gateway that logs each request to a pipe, with the end of the pipe that nobody reads yet.
fn start_with_unread_log() -> (Child, ChildStderr, SocketAddr) {
    let mut child = program()
        .args(["dev", "--json", "--verbose", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let started: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = started["url"].as_str().unwrap().strip_prefix("http://").unwrap().parse().unwrap();
    let log = child.stderr.take().unwrap();
    (child, log, address)
}

/// So many requests over one connection, and whether all of them were answered.
async fn requests(address: SocketAddr, count: usize) -> bool {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let last = "GET /nothing HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n";
    let text = "GET /nothing HTTP/1.1\r\nhost: g\r\n\r\n".repeat(count - 1) + last;
    let mut answers = Vec::new();
    let both = async { tokio::join!(writing.write_all(text.as_bytes()), reading.read_to_end(&mut answers)) };
    drop(timeout(Duration::from_mins(1), both).await);
    String::from_utf8_lossy(&answers).matches("HTTP/1.1 404").count() == count
}

async fn is_alive(address: SocketAddr) -> bool {
    let request = hyper::Request::get("/healthz").header("host", "g");
    let answer = exchange(address, request.body(http_body_util::Full::default()).unwrap());
    matches!(timeout(Duration::from_secs(5), answer).await, Ok(Ok(answer)) if answer.status == 200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_holds_up_no_request_and_says_later_what_it_dropped() {
    let (mut child, log, address) = start_with_unread_log();
    // Many times what the pipe and the queue hold.
    let all = join_all((0..30).map(|_| requests(address, 1_000))).await;
    let alive = is_alive(address).await;
    let said = std::thread::spawn(move || {
        let lines = BufReader::new(log).lines().map_while(Result::ok);
        lines.filter(|line| line.contains("log lines were dropped")).collect::<Vec<_>>()
    });
    // What comes now is written again.
    let after = requests(address, 1).await;
    signal(child.id(), "TERM");
    let ended = child.wait().unwrap();
    let said = said.join().unwrap();
    assert_eq!(all.iter().filter(|answered| **answered).count(), 30, "connections on which all was answered");
    assert!(alive && after && ended.success(), "{alive} {after} {ended}");
    assert_eq!(said.len(), 1, "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_reader_is_gone_fails_no_request() {
    let (mut child, log, address) = start_with_unread_log();
    drop(log);
    let answered = requests(address, 100).await;
    let alive = is_alive(address).await;
    signal(child.id(), "TERM");
    assert!(answered && alive && child.wait().unwrap().success());
}
