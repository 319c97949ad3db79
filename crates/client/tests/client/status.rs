//! What a gateway says of a request that has ended elsewhere: it closes a card at once, and can do nothing else.

use std::{sync::Arc, time::Duration};

use countersign_client::{
    approver::Approver,
    channel::{ApproverEvent, Settings, Transport},
    clock::SystemClock,
    http::Http,
    keys::DeviceKeys,
    profile::{GatewayUrl, Pins},
};
use countersign_wire::exchange::ExchangeState;
use futures_util::{SinkExt as _, StreamExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_tungstenite::{accept_async, tungstenite::Message};

/// What the gateway is told: the first message of the channel, and every call beside it.
#[derive(Default)]
struct Heard {
    hello: Value,
    calls: Vec<String>,
}

/// A gateway that sends these messages on every WebSocket.
async fn gateway(messages: Vec<Value>) -> (Http, Arc<Mutex<Heard>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = GatewayUrl::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let heard = Arc::new(Mutex::new(Heard::default()));
    let kept = heard.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, messages.clone(), kept.clone()));
        }
    });
    (Http::new(url, None).unwrap(), heard)
}

async fn serve(mut stream: TcpStream, messages: Vec<Value>, heard: Arc<Mutex<Heard>>) {
    let mut bytes = [0; 2_048];
    let length = stream.peek(&mut bytes).await.unwrap();
    let text = String::from_utf8_lossy(&bytes[..length]).to_lowercase();
    if !text.contains("upgrade: websocket") {
        heard.lock().calls.push(text.lines().next().unwrap_or_default().to_owned());
        let _read = stream.read(&mut bytes).await;
        return;
    }
    let mut socket = accept_async(stream).await.unwrap();
    let hello = socket.next().await.unwrap().unwrap();
    heard.lock().hello = serde_json::from_str(hello.to_text().unwrap()).unwrap();
    for message in messages {
        socket.send(Message::text(message.to_string())).await.unwrap();
    }
    while let Some(Ok(_)) = socket.next().await {}
}

fn status(number: u8, of: &str, state: &str) -> Value {
    let at = "2026-11-15T12:00:00Z";
    let body = json!({ "requestId": of, "state": state, "createdAt": at, "expiresAt": at });
    json!({
        "msgId": format!("m-{number}"), "msgType": "exchange.status", "requestId": format!("r-{number}"),
        "createdAt": at, "sender": { "gatewayId": "gw" }, "body": body,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_closes_a_card_and_is_not_acknowledged() {
    let (http, heard) = gateway(vec![
        status(1, "r-1", "pendingApproval"),
        status(2, "another", "decided"),
        status(3, "r-3", "nonsense"),
        status(4, "r-4", "decided"),
        status(5, "r-5", "withdrawn"),
        status(6, "r-6", "expired"),
    ])
    .await;
    let keys = DeviceKeys::generate().unwrap();
    let ada = Approver { http, id: "ada".parse().unwrap(), keys, clock: Arc::new(SystemClock) };
    let settings = Settings { transports: vec![Transport::Websocket], ..Settings::default() };
    let (mut listener, pins) = (ada.listen(settings), Pins::default());
    let mut events = Vec::new();
    while events.len() < 3 {
        let event = timeout(Duration::from_secs(20), listener.next(&pins)).await.unwrap().unwrap();
        match event {
            ApproverEvent::Gone { request_id, state } => events.push((request_id.to_string(), state)),
            other => assert!(matches!(other, ApproverEvent::Connected { .. }), "{other:?}"),
        }
    }
    let ended = |id: &str, state| (id.to_owned(), Some(state));
    let expected = [
        ended("r-4", ExchangeState::Decided),
        ended("r-5", ExchangeState::Withdrawn),
        ended("r-6", ExchangeState::Expired),
    ];
    assert_eq!(events, expected, "what still waits, names another request or is not understood is left out");
    // An acknowledgement would have been on its way by now.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let heard = heard.lock();
    assert_eq!(heard.hello["capabilities"]["org.countersign.status"], true);
    assert!(heard.calls.iter().all(|call| call.starts_with("get ")), "{:?}", heard.calls);
}
