//! What a gateway can't do to the ends: keep them busy, or fill their memory.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use countersign_client::{
    approver::{Approver, MAX_PAGES},
    audience::Audience,
    clock::{Clock as _, SystemClock},
    enforcer::Enforcer,
    http::{CallError, Http},
    journal::MemoryJournal,
    keys::DeviceKeys,
    profile::{GatewayUrl, Party, Pin, PinSource, Pins},
    request::{Draft, Request},
};
use countersign_wire::artifact::ArtifactType;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::timeout,
};

/// A gateway that gives the same answer to every call, and counts them.
async fn answers(answer: String) -> (Http, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = GatewayUrl::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut head = [0; 4_096];
            let _read = stream.read(&mut head).await;
            let _written = stream.write_all(answer.as_bytes()).await;
        }
    });
    (Http::new(url, None).unwrap(), calls)
}

#[tokio::test]
async fn a_gateway_that_does_not_hold_waits_does_not_keep_the_enforcer_busy() {
    let answer =
        "HTTP/1.1 204 No Content\r\nproto-exchange-state: pendingApproval\r\nconnection: close\r\n\r\n";
    let (http, calls) = answers(answer.to_owned()).await;
    let (keys, ada) = (DeviceKeys::generate().unwrap(), DeviceKeys::generate().unwrap());
    let mut pins = Pins::default();
    let party = Party::Approver("ada".parse().unwrap());
    pins.insert(Pin::new(party, ada.bundle(), PinSource::Paired, SystemClock.now())).unwrap();
    let draft = Draft {
        artifact_type: ArtifactType::CommandReview,
        payload: "{}".to_owned(),
        repo_name: "r".to_owned(),
        valid_for: Duration::from_mins(1),
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    };
    let request = Request::build(&draft, &"robot".parse().unwrap(), &keys, &pins, SystemClock.now()).unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let robot = Enforcer { http, id: "robot".parse().unwrap(), keys, clock: Arc::new(SystemClock), journal };
    assert!(timeout(Duration::from_millis(2_500), robot.wait(&request, &pins)).await.is_err());
    assert!(calls.load(Ordering::Relaxed) <= 3, "{calls:?} calls in 2.5 s");
}

#[tokio::test]
async fn an_inbox_without_end_is_read_up_to_a_bound() {
    let page = r#"{"msgType":"inbox.page","requestId":"x","createdAt":"2026-11-15T12:00:00Z","sender":{"gatewayId":"gw"},"body":{"items":[],"nextCursor":"more"}}"#;
    let length = page.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/proto+json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{page}"
    );
    let (http, calls) = answers(answer).await;
    let keys = DeviceKeys::generate().unwrap();
    let ada = Approver { http, id: "ada".parse().unwrap(), keys, clock: Arc::new(SystemClock) };
    let items = timeout(Duration::from_secs(20), ada.inbox(&Pins::default())).await.unwrap().unwrap();
    assert_eq!((items.len(), calls.load(Ordering::Relaxed)), (0, MAX_PAGES));
}

#[tokio::test]
async fn the_status_of_another_exchange_is_no_answer() {
    let status = r#"{"msgType":"exchange.status","requestId":"other","createdAt":"2026-11-15T12:00:00Z","sender":{"gatewayId":"gw"},"body":{"requestId":"other","state":"delivered","createdAt":"2026-11-15T12:00:00Z","expiresAt":"2026-11-15T13:00:00Z"}}"#;
    let length = status.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/proto+json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{status}"
    );
    let (http, _) = answers(answer).await;
    let keys = DeviceKeys::generate().unwrap();
    let ada = Approver { http, id: "ada".parse().unwrap(), keys, clock: Arc::new(SystemClock) };
    assert_eq!(ada.status(&"other".parse().unwrap()).await.unwrap().state.as_str(), "delivered");
    assert_eq!(ada.status(&"mine".parse().unwrap()).await, Err(CallError::NotUnderstood));
}
