//! Traces: a collector that is configured gets spans, with the trace of the client; without one there is nothing.

#![cfg(feature = "otel")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use support::{
    client::Client,
    messages::{approval, submission},
    process::{Gateway, On},
    ws::Socket,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A span, as far as it is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
}

/// A field of a protobuf message: its number and its bytes, which are empty for numbers.
fn fields(mut message: &[u8]) -> Vec<(u64, &[u8])> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let length = match tag & 7 {
            0 => {
                varint(&mut message);
                0
            }
            1 => 8,
            2 => usize::try_from(varint(&mut message)).unwrap(),
            5 => 4,
            other => panic!("wire type {other}"),
        };
        let (field, rest) = message.split_at(length);
        fields.push((tag >> 3, field));
        message = rest;
    }
    fields
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for position in 0.. {
        let (byte, rest) = message.split_first().unwrap();
        *message = rest;
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

fn all(message: &[u8], number: u64) -> Vec<&[u8]> {
    let fields = fields(message).into_iter();
    fields.filter(|(field, _)| *field == number).map(|(_, bytes)| bytes).collect()
}

fn hex(bytes: &[&[u8]]) -> String {
    let digit = |digit: u8| char::from_digit(u32::from(digit), 16).unwrap();
    bytes.concat().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The spans of an `ExportTraceServiceRequest`: its resources, their scopes, their spans.
fn spans(request: &[u8]) -> Vec<Span> {
    let scopes = all(request, 1).into_iter().flat_map(|resource| all(resource, 2));
    let spans = scopes.flat_map(|scope| all(scope, 2));
    spans
        .map(|span| Span {
            trace: hex(&all(span, 1)),
            id: hex(&all(span, 2)),
            parent: hex(&all(span, 4)),
            name: String::from_utf8(all(span, 5).concat()).unwrap(),
        })
        .collect()
}

/// A collector that keeps what it is sent.
struct Collector {
    address: SocketAddr,
    spans: mpsc::UnboundedReceiver<Span>,
    seen: Vec<Span>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, spans) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(collect(stream, sender.clone()));
            }
        });
        Self { address, spans, seen: Vec::new() }
    }

    /// Waits for a span that fits.
    async fn find(&mut self, fits: impl Fn(&Span) -> bool) -> Span {
        let waiting = async {
            loop {
                if let Some(span) = self.seen.iter().find(|span| fits(span)) {
                    return span.clone();
                }
                self.seen.push(self.spans.recv().await.unwrap());
            }
        };
        timeout(Duration::from_secs(30), waiting).await.expect("such a span")
    }
}

/// Answers requests on one connection.
async fn collect(mut stream: TcpStream, sender: mpsc::UnboundedSender<Span>) -> Option<()> {
    let mut read = Vec::new();
    loop {
        let head_end = loop {
            if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            (stream.read_buf(&mut read).await.ok()? > 0).then_some(())?;
        };
        let head = String::from_utf8_lossy(&read[..head_end]).to_lowercase();
        assert!(head.starts_with("post /v1/traces "), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let length: usize = length.trim().parse().unwrap();
        while read.len() < head_end + length {
            (stream.read_buf(&mut read).await.ok()? > 0).then_some(())?;
        }
        for span in spans(&read[head_end..head_end + length]) {
            drop(sender.send(span));
        }
        read.drain(..head_end + length);
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.ok()?;
    }
}

#[tokio::test]
async fn a_request_is_a_span_of_its_clients_trace_and_its_steps_are_below_it() {
    let mut collector = Collector::start().await;
    let traces = format!("[traces]\nendpoint = \"http://{}/v1/traces\"\n", collector.address);
    let gateway = Gateway::start_with(On::Sqlite, &traces);
    let enforcer = Client::new(gateway.address, &gateway.key("acme", "enforcer", None));
    let approver = Client::new(gateway.address, &gateway.key("acme", "approver", None));
    let mut ada = Socket::open(&approver, "approver", "ada").await;
    let sent = format!("00-{TRACE}-{PARENT}-01");
    let body = submission("one", "robot", "ada").to_string();
    let answer = enforcer.post_with("/v1/artifacts", &body, &[("traceparent", &sent)]).await.expect(202);
    assert_eq!(ada.message().await["msgType"], "approval.request");

    let request = collector.find(|span| span.name == "POST /v1/artifacts").await;
    assert_eq!((request.trace.as_str(), request.parent.as_str()), (TRACE, PARENT));
    assert_eq!(answer.header("traceparent"), format!("00-{TRACE}-{}-01", request.id));
    for step in ["authenticate", "commit"] {
        let found = collector.find(|span| span.name == step && span.trace == TRACE).await;
        assert_eq!(found.parent, request.id, "{step}");
    }
    // It is on another connection, whose client said nothing of a trace.
    let push = collector.find(|span| span.name == "push").await;
    assert!(push.parent.is_empty() && push.trace != TRACE, "{push:?}");
    collector.find(|span| span.name == "load" && !span.parent.is_empty()).await;

    let body = approval("one", "ada").to_string();
    let answer = approver.post_with("/v1/decisions", &body, &[("traceparent", "00-nonsense-01")]).await;
    assert_eq!(answer.expect(200).header("traceparent"), "", "a malformed one is ignored");
    let decided = collector.find(|span| span.name == "POST /v1/decisions").await;
    assert!(decided.parent.is_empty() && decided.trace != TRACE, "{decided:?}");
    gateway.wait_for_log(&format!("\"trace\":\"{TRACE}\"")).await;
}

#[tokio::test]
async fn a_trace_that_its_client_does_not_record_is_not_sent() {
    let mut collector = Collector::start().await;
    let traces = format!("[traces]\nendpoint = \"http://{}/v1/traces\"\n", collector.address);
    let gateway = Gateway::start_with(On::Sqlite, &traces);
    let client = Client::new(gateway.address, &gateway.key("acme", "enforcer", None));
    let unsampled = format!("00-{TRACE}-{PARENT}-00");
    client.call(hyper::Method::GET, "/v1/exchanges/x", "", &[("traceparent", &unsampled)]).await.expect(404);
    client.get("/v1/status").await.expect(200);
    collector.find(|span| span.name == "GET /v1/status").await;
    assert!(collector.seen.iter().all(|span| span.trace != TRACE), "{:?}", collector.seen);
}

/// The names of a process's threads.
fn threads(pid: u32) -> BTreeSet<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).collect()
}

#[tokio::test]
async fn without_a_collector_there_is_no_thread_and_the_traceparent_comes_back() {
    let sends = |name: &String| name.starts_with("OpenTelemetry") || name.starts_with("reqwest");
    let collector = Collector::start().await;
    let traces = format!("[traces]\nendpoint = \"http://{}/v1/traces\"\n", collector.address);
    let sending = Gateway::start_with(On::Sqlite, &traces);
    assert!(threads(sending.pid()).iter().any(sends), "{:?}", threads(sending.pid()));
    let gateway = Gateway::start(On::Sqlite);
    let client = Client::new(gateway.address, &gateway.key("acme", "enforcer", None));
    let sent = format!("00-{TRACE}-{PARENT}-01");
    let headers = [("traceparent", sent.as_str())];
    let answer = client.call(hyper::Method::GET, "/v1/status", "", &headers).await.expect(200);
    assert_eq!(answer.header("traceparent"), sent, "no span was made");
    gateway.wait_for_log(&format!("\"trace\":\"{TRACE}\"")).await;
    assert!(!threads(gateway.pid()).iter().any(sends), "{:?}", threads(gateway.pid()));
}

#[tokio::test]
async fn a_collector_that_does_not_answer_delays_no_request_and_no_end() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let traces = format!("[traces]\nendpoint = \"http://{}/v1/traces\"\n", silent.local_addr().unwrap());
    let mut gateway = Gateway::start_with(On::Sqlite, &traces);
    let client = Client::new(gateway.address, &gateway.key("acme", "enforcer", None));
    let (_connected, _) = {
        client.get("/v1/status").await.expect(200);
        timeout(Duration::from_secs(30), silent.accept()).await.expect("a batch").unwrap()
    };
    // All of them together: twenty that waited for the collector, each for the 5 s that it is given, would take longer.
    let requests = async {
        for _ in 0..20 {
            client.get("/v1/status").await.expect(200);
        }
    };
    timeout(Duration::from_secs(30), requests).await.expect("at once");
    gateway.terminate();
    let ended = tokio::task::spawn_blocking(move || gateway.ended());
    assert!(timeout(Duration::from_secs(30), ended).await.expect("an end").unwrap());
}
