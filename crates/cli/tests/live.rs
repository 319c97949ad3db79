//! The inbox hears at once what a gateway pushes, whatever it reads in between.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use countersign_cli::source::{Incoming, Live, Source as _};
use countersign_client::{
    approver::Approver,
    clock::SystemClock,
    http::Http,
    keys::DeviceKeys,
    profile::{Credential, Facts, FileKeys, GatewayUrl, Party, Profile},
};
use countersign_wire::exchange::ExchangeState;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_tungstenite::{accept_async, tungstenite::Message};

const AT: &str = "2026-11-15T12:00:00Z";

fn message(number: u8, msg_type: &str, body: &Value) -> String {
    json!({
        "msgId": format!("m-{number}"), "msgType": msg_type, "requestId": format!("r-{number}"),
        "createdAt": AT, "sender": { "gatewayId": "gw" }, "body": body,
    })
    .to_string()
}

fn status(number: u8, state: &str) -> String {
    let body =
        json!({ "requestId": format!("r-{number}"), "state": state, "createdAt": AT, "expiresAt": AT });
    message(number, "exchange.status", &body)
}

/// A gateway with an empty inbox that pushes what has ended.
async fn serve(mut stream: TcpStream) {
    let mut head = [0; 4_096];
    let length = stream.peek(&mut head).await.unwrap();
    if String::from_utf8_lossy(&head[..length]).to_lowercase().contains("upgrade: websocket") {
        let mut socket = accept_async(stream).await.unwrap();
        let pushed = [
            status(1, "pendingApproval"),
            status(2, "decided"),
            message(3, "exchange.withdrawn", &json!({})),
            status(4, "expired"),
        ];
        for text in pushed {
            socket.send(Message::text(text)).await.unwrap();
        }
        while let Some(Ok(_)) = socket.next().await {}
        return;
    }
    let page = message(9, "inbox.page", &json!({ "items": [], "nextCursor": null }));
    while stream.read(&mut head).await.is_ok_and(|read| read > 0) {
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/proto+json\r\ncontent-length: {}\r\n\r\n{page}",
            page.len()
        );
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn what_has_ended_elsewhere_is_told_at_once_and_what_waits_is_not_touched() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = GatewayUrl::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let keys = DeviceKeys::generate().unwrap();
    let facts = Facts {
        party: Party::Approver("ada".parse().unwrap()),
        tenant: "acme".parse().unwrap(),
        gateway: gateway.clone(),
        label: "desk".parse().unwrap(),
    };
    let credential = Credential::new("csk_acme_x_y".to_owned().into()).unwrap();
    let profile = Profile::create(&folder.path().join("desk"), facts, &credential, &keys, &FileKeys).unwrap();
    let http = Http::new(gateway, Some(&credential)).unwrap();
    let approver = Approver { http, id: "ada".parse().unwrap(), keys, clock: Arc::new(SystemClock) };
    let mut source = Live::new(Arc::new(approver), profile);
    let (mut ended, mut readings) = (Vec::new(), 0);
    while ended.len() < 3 {
        match timeout(Duration::from_secs(20), source.next()).await.unwrap().unwrap() {
            Incoming::Inbox(items) => {
                readings += 1;
                assert!(items.is_empty());
            }
            Incoming::Ended(id, state) => ended.push((id.to_string(), state)),
        }
    }
    let expected = [
        ("r-2".to_owned(), ExchangeState::Decided),
        ("r-3".to_owned(), ExchangeState::Withdrawn),
        ("r-4".to_owned(), ExchangeState::Expired),
    ];
    assert_eq!(ended, expected);
    assert!(readings >= 1, "the first reading does not wait");
}
