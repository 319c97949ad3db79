//! What clients send and never finish, or ask for and never read, takes a bounded amount of memory and nobody's turn.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _, future::join_all, stream::FuturesUnordered};
use serde_json::json;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::frame::{
        Frame,
        coding::{Data, OpCode},
    },
};

use crate::{
    all_of, client, submit,
    support::{
        messages::submission,
        process::{Gateway, On, resident_kib},
        ws::Socket,
    },
};

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
    let (answer, _) = all_of(&mut announced[0], Duration::from_secs(45)).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(started.elapsed() < Duration::from_secs(40), "a piece that takes longer than 15 s is too slow");
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
    assert!(count >= 20 && median < Duration::from_millis(500), "{count} requests, median {median:?}");
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
    let mut endings: FuturesUnordered<_> = sockets.iter_mut().map(Socket::next).collect();
    let (mut ended, mut deadline) = (0, Instant::now() + Duration::from_secs(20));
    while let Ok(Some(next)) = timeout_at(deadline, endings.next()).await {
        ended += usize::from(next.is_err());
        if ended == 5 {
            // These are enough; what is too many has two seconds to show.
            deadline = Instant::now() + Duration::from_secs(2);
        }
    }
    drop(endings);
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
    assert_eq!(timeout(Duration::from_secs(30), again).await.unwrap(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_are_given_up_after_ten_seconds() {
    let gateway = Gateway::start(On::Sqlite);
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    // Many times what the system holds for a connection.
    let request = "GET /openapi.json HTTP/1.1\r\nhost: g\r\n\r\n".repeat(300);
    let before = Instant::now();
    stream.write_all(request.as_bytes()).await.unwrap();
    let gone = async {
        // The other end is gone when writing to it fails.
        while stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: g\r\n\r\n").await.is_ok() {
            sleep(Duration::from_millis(200)).await;
        }
    };
    assert!(timeout(Duration::from_secs(40), gone).await.is_ok(), "the connection is held for ever");
    assert!(before.elapsed() > Duration::from_secs(8));
}
